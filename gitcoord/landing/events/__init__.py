"""Events about landings."""
