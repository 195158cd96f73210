"""Events about effects and numbers."""
