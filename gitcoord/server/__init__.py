"""The gate on the server: who pushes, what a push changes, and whether its events follow from the rules."""
