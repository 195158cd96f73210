"""Every error gitcoord raises, with its exit code.

    GitcoordError            4  gitcoord itself failed
    ├── UsageError           2  the words were wrong; nothing was read or changed
    ├── NotInitialised       2  no ledger here, and the command needs one
    ├── Refused              1  a rule said no; carries the Refusal
    ├── Contention           3  lost the race too often
    ├── TimedOut             3  waited as long as asked
    ├── StoreError           4  git or the file system failed; nothing was granted
    │   ├── LockHeld         4  a lock file that nobody may remove for you
    │   └── CouldNotJudge    4  the ledger is missing, rewound, foreign or unreadable: deny
    │       ├── ServerBehind 4  the remote lacks events that were seen here
    │       └── Unreachable  5  a remote that is needed for the verdict does not answer
    └── OutcomeUnknown       5  the swap may or may not have happened

An error carries data (`code`, `message`, `hints`, `data`); only `terminal/` and hooks render it, with colour and an exit code.
"""

from __future__ import annotations

from gitcoord.startup.namedtuple import NamedTuple


class Refusal(NamedTuple):
    """A rule's "no": which rule, in words, the conflicting claims, and the next command that helps."""

    code: str
    message: str
    blocking_claims: tuple[dict[str, object], ...] = ()
    hints: tuple[str, ...] = ()


def _one_line(message: str) -> str:
    """git says some things in several lines, which would be printed as escapes."""
    if "\n" not in message:
        return message
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    return " ".join(line if line.endswith((":", ";")) else f"{line};" for line in lines).rstrip(";")


class GitcoordError(Exception):
    exit_code = 4
    code = "failed"

    def __init__(self, message: str, *, hints: tuple[str, ...] = (), data: dict[str, object] | None = None) -> None:
        self.message = _one_line(message)
        super().__init__(self.message)
        self.hints = hints
        self.data = data or {}


class UsageError(GitcoordError):
    exit_code = 2
    code = "usage"


class NotInitialised(GitcoordError):
    exit_code = 2
    code = "not-initialised"


class Refused(GitcoordError):
    exit_code = 1

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message, hints=refusal.hints)
        self.refusal = refusal
        self.code = refusal.code
        if refusal.blocking_claims:
            self.data = {"held": list(refusal.blocking_claims)}


def refused(code: str, message: str, *hints: str) -> Refused:
    return Refused(Refusal(code, message, hints=hints))


def raise_if(refusal: Refusal | None) -> None:
    """Raise Refused where there is a refusal."""
    if refusal is not None:
        raise Refused(refusal)


class Contention(GitcoordError):
    exit_code = 3
    code = "contention"


class TimedOut(GitcoordError):
    exit_code = 3
    code = "timeout"


class StoreError(GitcoordError):
    code = "store"


class LockHeld(StoreError):
    code = "lock"


class CouldNotJudge(StoreError):
    code = "could-not-judge"


class TrunkMoved(CouldNotJudge):
    """A push comes after another one, whose commits are not here."""


class ServerBehind(CouldNotJudge):
    """Its code is that of `CouldNotJudge`, its message begins with `words` unless the ledger there was rewritten, and with
    `differs` where others have written there since."""

    words = "the server is behind what this clone has seen"
    differs = f"{words}, and has gone on without it"


class Unreachable(CouldNotJudge):
    exit_code = 5
    code = "unreachable"


class OutcomeUnknown(GitcoordError):
    exit_code = 5
    code = "unknown-outcome"
