"""The store of a clone whose authority is a remote: its refs mirror those of the remote.

Reads see the mirror with the batches that wait to be pushed on top (the overlay). A swap is a push, then the mirror follows.
"""

from __future__ import annotations

from gitcoord.base.names import CONFIG, LEDGER, Oid, RefName
from gitcoord.git.commands.settings import get_setting
from gitcoord.git.config import Settings
from gitcoord.git.deadline import Deadline
from gitcoord.git.files import exists
from gitcoord.git.repo import Repo
from gitcoord.git.store import (
    Object,
    Operation,
    RefUpdate,
    Store,
    SwapFailed,
    as_update,
    move,
)
from gitcoord.ledger.remote.git_remote import CHANGING, LANDED, LOOKING, GitRemote, is_extra
from gitcoord.startup.annotations import Any, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNotes


class MirrorStore:
    """Implements Store: `local` has the mirror, `remote` is the authority."""

    def __init__(self, local: Store, remote: GitRemote) -> None:
        self.local = local
        self.remote = remote
        self.overlay: dict[RefName, Oid | None] = {}
        self.oid_length = local.oid_length

    # --- reading

    def read(self, names: Sequence[str]) -> list[Object | None]:
        if not self.overlay:
            return self.local.read(names)
        wanted = [self._name(name) for name in names]
        found = iter(self.local.read([name for name in wanted if name]))
        return [next(found) if name else None for name in wanted]

    def _name(self, name: str) -> str:
        """The name to read under the overlay; '' for a ref that will be deleted."""
        ref, colon, path = name.partition(":")
        if ref not in self.overlay:
            return name
        oid = self.overlay[ref]
        return f"{oid}{colon}{path}" if oid is not None else ""

    def target(self, ref: RefName) -> Oid | None:
        return self.overlay[ref] if ref in self.overlay else self.local.target(ref)

    def resolve(self, names: Sequence[str]) -> list[Oid | None]:
        if not self.overlay:
            return self.local.resolve(names)
        wanted = [self._name(name) for name in names]
        found = iter(self.local.resolve([name for name in wanted if name]))
        return [next(found) if name else None for name in wanted]

    def __getattr__(self, name: str) -> Any:
        """Objects, locks and the redo log are those of the mirror."""
        return getattr(self.local, name)

    # --- writing

    def swap(self, operations: Sequence[Operation]) -> None:
        """Push at once, past the batches. Operations on refs that the remote does not keep are done here only."""
        self.local.flush()
        moves = [as_update(op) for op in operations if self.remote.takes(op.ref)]
        if all(m.old == m.new for m in moves):
            self.local.swap(operations)
            return
        report = self.remote.push(moves)
        if report.kind != LANDED:
            raise SwapFailed(report.words or report.kind)
        self.follow([as_update(op) for op in operations])

    def follow(self, moves: Sequence[RefUpdate]) -> bool:
        """Update the mirror after a push. False: that failed, and a fetch is needed. The trunk of this clone is no mirror: git has noted
        the remote's when it pushed."""
        moves = [m for m in moves if not is_extra(m.ref)]
        now = self.local.resolve([m.ref for m in moves])
        if any(m.ref == LEDGER and oid != (m.old or None) for m, oid in zip(moves, now)):
            return False  # the mirror is not at the ledger that was pushed onto
        operations = [op for m, oid in zip(moves, now) if (op := move(m.ref, oid, m.new or None)) is not None]
        try:
            if operations:
                self.local.swap(operations)
        except SwapFailed:
            return False
        return True


def open_mirror(
    local: Store, repo: Repo, settings: Settings, notes: LockNotes, *, long_lived: bool = False
) -> MirrorStore:
    """The store that the settings describe. `long_lived`: push with `client`."""
    name = settings.get("gitcoord.authority")
    capabilities: dict[str, Any] = {
        "branches": settings.get("gitcoord.namespaces") == "branches",
        "atomic": settings.flag("gitcoord.atomic", default=True),
        "deadline": deadline_for(name, repo, settings),
    }
    if long_lived:
        from gitcoord.ledger.remote.client import Client

        remote: GitRemote = Client(local, repo.env, name, **capabilities)
    else:
        remote = GitRemote(repo.env, name, **capabilities)
    remote.notes = notes
    return MirrorStore(local, remote)


def deadline_for(
    name: str, repo: Repo, settings: Settings, looking: float = LOOKING, changing: float = CHANGING
) -> Deadline:
    """The time to wait for a remote: the local setting, else the policy's `[remote] timeout`, else these seconds."""
    known: list[float] = []

    def limit(changes: bool) -> float:
        if not known:
            wish = settings.get("gitcoord.remotetimeout") or _policy_timeout(repo)
            known.append(_seconds(wish, 0.0))
        return known[0] or (changing if changes else looking)

    return Deadline(name, limit)


def _policy_timeout(repo: Repo) -> str:
    """`[remote] timeout` of the policy in the work tree, which need not be trusted for this."""
    path = f"{repo.worktree}/{CONFIG}"
    if not repo.worktree or not exists(path):
        return ""
    return get_setting(repo.env, "remote.timeout", file=path).text.strip()


def _seconds(wish: str, usual: float) -> float:
    """A number of seconds (`30`, `30s`) or minutes (`2m`)."""
    times = {"s": 1, "m": 60}.get(wish[-1:], 0)
    digits = wish[:-1] if times else wish
    return float(digits) * (times or 1) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else usual
