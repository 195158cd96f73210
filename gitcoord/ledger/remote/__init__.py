"""A remote as the authority: joining it, batches of requests, pushes, fetches, and a server that lost history."""
