"""Lock files and locks: who owns one, which are stale, and the queue of writers on one machine."""
