"""Benchmarks: `python -m tests.bench`. See docs/benchmarks.md."""
