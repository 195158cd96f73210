"""The shared work queue: tasks, workers and the dispatcher."""
