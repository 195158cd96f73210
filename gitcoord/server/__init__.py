"""The gate on the server: the account that pushes, the changes of a push, and whether its events follow the rules."""
