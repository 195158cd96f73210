"""Views over all packages: the overview, and what an agent reads when it starts."""
