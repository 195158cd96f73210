"""One effect of a shell command on a file, as far as its text shows."""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple

WRITE, DELETE, READ, BYPASS, UNKNOWN = "write", "delete", "read", "bypass", "unknown"
KINDS = (WRITE, DELETE, READ, BYPASS, UNKNOWN)
# Effects on the index and on HEAD, which all agents of one work tree share. STAGE: changes at or below the path get into the index;
# COMMIT: all that is staged in the work tree at the path is committed; SWITCH: HEAD of that work tree moves to another branch or base.
# HOOK: a command that git's hooks of the repository at the path judge.
STAGE, COMMIT, SWITCH, HOOK = "stage", "commit", "switch", "hook"
SHARED = (STAGE, COMMIT, SWITCH, HOOK)
CAREFUL = (
    "careful"  # the effect of the same word changes no file that has uncommitted changes: git refuses that by itself
)
FAILED = "failed"  # a defect of the parser: the command was not judged
BUILD = "build"  # a build tool or test runner: the project's own code runs, and what it writes is derived as a rule


class FileEffect(NamedTuple):
    kind: str
    # Absolute, without '.' and '..'; symbolic links are not followed. With UNKNOWN: what is touched lies at or below it.
    # '' where there is none, or where nothing can be said about it.
    path: str
    word: str  # the part of the command that shows it, as it was written
    detail: str  # for a person
