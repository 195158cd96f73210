"""The command line of one call: its words parsed, its answer rendered, longer input read."""
