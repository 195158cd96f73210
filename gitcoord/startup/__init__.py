"""Start-up tricks, and nothing else: light named tuples, the bundle of compiled modules, the loader of the shell parser."""
