"""What every package may use: errors, names of refs and paths, the JSON codec, durations, texts. Imports nothing of gitcoord."""
