"""Claims: who may hold a path or a resource, how they are taken, renewed, given back and shown."""
