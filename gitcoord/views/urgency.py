"""The order of rows where a list is cut: those that somebody has to look at first."""

from __future__ import annotations

from gitcoord.terminal.screen import Row

LIVES = {"expired": "yellow", "waiting": "yellow", "alive": "green", "idle": "dim", "killed": "dim", "ended": "dim"}
_ACTIVITIES = tuple(LIVES)
_STATES = ("needs-human", "blocked", "review", "active", "assigned", "open")


def claims_first(rows: list[Row]) -> list[Row]:
    """Claims that somebody waits for, then expired ones, then the others."""
    return sorted(rows, key=lambda row: (not row.get("waiters"), not row["silent"]))


def agents_first(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: _ACTIVITIES.index(row["activity"]))


def tasks_first(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: _STATES.index(row["state"]))
