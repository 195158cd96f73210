"""Events that move a task."""
