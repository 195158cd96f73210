"""What commands do: one file a family, each with `perform(run, call)`. `dispatch.py` knows which."""
