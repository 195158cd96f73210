"""Sessions of agents: who acts, heartbeats, the kill switch."""
