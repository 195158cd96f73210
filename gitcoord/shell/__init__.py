"""What shell commands do to files: pure, from a syntax tree that `shell/parse.py` makes out of a command's text."""
