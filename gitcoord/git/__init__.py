"""git as storage: repositories, objects, refs, child processes, settings. Does not know what a claim is."""
