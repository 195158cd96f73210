"""Events about deploys."""
