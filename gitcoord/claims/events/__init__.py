"""Events that grant, give back or end claims."""
