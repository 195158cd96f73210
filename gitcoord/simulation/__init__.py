"""The simulated protocol: the real rules, many agents, virtual time, one seed, and injected faults."""
