"""Errors, names of refs and paths, the JSON codec, durations and texts for every package. Imports nothing of gitcoord."""
