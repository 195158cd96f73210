"""Opening a repository, and the world that its rules ask: this machine, its git, the project's settings."""
