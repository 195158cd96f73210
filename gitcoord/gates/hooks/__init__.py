"""git's hooks on the client: installing them beside other hooks, and removing them."""
