"""One function a use case: read, decide, commit."""
