"""Handoffs: claims, a task and a document pass to another agent in one step."""
