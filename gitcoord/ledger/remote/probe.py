"""The pushes that a host accepts, found out with a ref that is removed at once."""

from __future__ import annotations

from gitcoord.base.errors import Refused, StoreError, Unreachable, refused
from gitcoord.base.names import PROBE
from gitcoord.git.deadline import Deadline
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.git_remote import FAILED, JOINING, LANDED, RACED, REJECTED, GitRemote, RemoteResult
from gitcoord.ledger.remote.mirror_store import deadline_for
from gitcoord.startup.namedtuple import NamedTuple


class HostCapabilities(NamedTuple):
    """The pushes that the host accepts."""

    branches: bool  # nothing but branches
    atomic: bool
    options: bool  # push options, by which a push names its agent


def probe(ctx: Context, name: str) -> HostCapabilities:
    """The pushes that the host accepts."""
    local = ctx.local
    oid = local.write("blob", b"gitcoord asks what this host takes\n")
    local.flush()
    capabilities = HostCapabilities(branches=False, atomic=True, options=True)
    ref = PROBE + ctx.host.random()[:12]
    for _ in range(4):
        remote = _Probing(ctx.repo.env, name, atomic=capabilities.atomic, deadline=joining_deadline(ctx, name))
        # The option names no agent: an account may act only for some.
        options = ("gitcoord-probe",) if capabilities.options else ()
        report = remote.push([RefUpdate(ref, "", oid)], options)
        if report.kind == LANDED:
            remote.push([RefUpdate(ref, oid, "")], options)
            return capabilities
        if "push options" in report.words:
            capabilities = capabilities._replace(options=False)
        elif "atomic" in report.words and capabilities.atomic:
            capabilities = capabilities._replace(atomic=False)
        elif report.kind in (REJECTED, RACED, FAILED):
            return capabilities._replace(branches=True)
        else:
            raise _failed(name, report)
    return capabilities._replace(branches=True)


class _Probing(GitRemote):
    def takes(self, ref: str) -> bool:
        return True


def joining_deadline(ctx: Context, name: str) -> Deadline:
    """More patience than usual: joining may push a whole ledger, without output meanwhile."""
    deadline = deadline_for(name, ctx.repo, ctx.settings, JOINING, JOINING)
    deadline.tell = ctx.tell
    return deadline


def _failed(name: str, report: RemoteResult) -> StoreError | Refused:
    if "[ledger]" in report.words:  # its hooks refuse us: people work there, with a ledger of their own
        return alone(name)
    return Unreachable(f"'{name}' cannot be reached: {report.words}", hints=("nothing was changed",))


def alone(name: str) -> Refused:
    return refused(
        "elsewhere",
        f"the ledger at '{name}' decides for that one repository, not for its clones: nothing was changed",
        "share it by a server that both push to: there, git coord setup --remote <server>; then, here, the same",
        "or work beside each other there, with one ledger: git coord worktree add <name>",
        f"or, if '{name}' is a fork that shall decide for its clones: git coord init --remote {name} --adopt",
    )
