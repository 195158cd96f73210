"""`git coord drill`: many agents at once on a scratch copy of the repository, by every way in, and a verdict."""
