"""Events about approvals, roles and written rules."""
