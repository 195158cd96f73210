"""Effects that happen at most once, and numbers that are given once."""
