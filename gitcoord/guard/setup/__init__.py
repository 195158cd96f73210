"""Agent tools at rest: their settings, skills and instructions, into which setup writes and out of which teardown takes."""
