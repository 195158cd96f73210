"""Handoffs: claims, a task and what the next agent must know pass in one step."""
