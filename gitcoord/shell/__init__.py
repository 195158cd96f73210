"""Effects of shell commands on files, from a syntax tree that `parse.py` makes of the command's text."""
