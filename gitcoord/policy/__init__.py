"""The policy of a project: settings and attributes in its commits, roles, private rules."""
