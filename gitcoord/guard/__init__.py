"""The guard of agent tools: each tool call is judged before it runs, and noted afterwards."""
