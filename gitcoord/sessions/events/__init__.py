"""Events about sessions, the kill switch and the halt."""
