"""The protocol simulated: the real rules, many agents, virtual time, one seed, and every fault that can be thought of."""
