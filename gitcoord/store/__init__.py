"""Git as storage: objects, refs, trees, locks. Nothing here knows what a claim is."""
