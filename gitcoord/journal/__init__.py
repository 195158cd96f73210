"""The journal, and the story of a path."""
