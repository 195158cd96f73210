"""Commits of named files from a shared work tree, and work trees for parallel branches."""
