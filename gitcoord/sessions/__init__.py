"""Sessions of agents: identity, heartbeats, the kill switch, launching an agent."""
