"""What shell commands do to files: pure, from a syntax tree that `hot/bash.py` makes out of a command's text."""
