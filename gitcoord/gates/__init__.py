"""The gates: every commit, ref change and push is judged here by the same rules."""
