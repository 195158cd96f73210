"""Thin edges: each parses, calls one app function and renders."""
