"""`fsck --repair`: refs that follow from events, and events whose refs are gone."""
