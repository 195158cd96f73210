"""Clauses that change no answer when they are disabled, each with the reason: they are there for speed."""

from __future__ import annotations

EQUAL: dict[str, str] = {}
