"""Events about the ledger itself."""
