"""Disables each clause of the judgement, one at a time, and looks whether a test notices: `python -m tests.clauses`."""
