"""Events that offer, accept and close a handoff."""
