"""Effects of commands: one file a family, each with `perform(run, call)`. `dispatch.py` picks the family."""
