"""Rules of early warnings: they need nobody yet, and may soon. Each names its signal, as what needs a person does."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import shell_word
from gitcoord.deploy.model import INTERRUPTED, Deploys
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.tasks.model import Task
from gitcoord.views.needs import Held, Need, late_waiters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.radar.model import Conflict

_MOST_PAIRS = 5  # of work that conflicts
_LAST = 4  # a lease is near its end in the last quarter of its ttl


class Lease(NamedTuple):
    """A claim or a task that its agent loses after `left` more seconds without a heartbeat, of `ttl`."""

    agent: str
    name: str
    left: int
    ttl: int


def of_leases(leases: Iterable[Lease]) -> list[Need]:
    """Leases near their end, a row for each agent: the next sign of life of the agent settles it."""
    near: dict[str, list[Lease]] = {}
    for lease in sorted(leases, key=lambda lease: lease.left):
        if lease.left <= lease.ttl // _LAST:
            near.setdefault(lease.agent, []).append(lease)
    found = []
    for agent, (first, *more) in near.items():
        what = first.name + (f" and {len(more)} more" if more else "")
        words = f"{agent} was last seen {format_duration(first.ttl - first.left)} ago: it loses {what} in {format_duration(first.left)}"
        help = f"git coord log --agent {shell_word(agent)}"
        found.append(Need("expiring", agent, words, help, f"heartbeat of {agent}", agent))
    return found


def of_lost_tasks(lost: list[Task], *, anybody: bool) -> list[Need]:
    """Tasks under way whose owners have expired, where nobody (`anybody`) is left who would take the next one."""
    if anybody or not lost:
        return []
    first = lost[0]
    more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
    words = f"no agent is alive, so nobody goes on with {first.id} of {first.owner}{more}"
    return [Need("stalled", first.id, words, "git coord task list", f"heartbeat of {first.owner}")]


def of_waits(held: Iterable[Held], now: int) -> list[Need]:
    """Waits that are longer than the holder expects (default: its ttl), and not yet so long that they need a person."""
    found = []
    for row in held:
        late = late_waiters(row, now, times=1)
        if late and not late_waiters(row, now, times=2):
            first, claim = min(late, key=lambda request: request.at), row.claim
            who = first.agent + (f" and {len(late) - 1} more" if len(late) > 1 else "")
            limit = (
                f"expected {format_duration(claim.expected)}"
                if claim.expected
                else f"has had it since {format_duration(now - claim.at)}"
            )
            words = f"{who} waited {format_duration(now - first.at)} for {row.name}; {claim.agent} {limit}"
            help = f"git coord why {shell_word(row.name)}"
            found.append(Need("slow", row.name, words, help, f"event {first.ticket}", claim.agent, first.at))
    return found


def of_old_copy(trunk: str, behind: int, names: list[str]) -> list[Need]:
    """Commits of trunk that changed claimed paths and that this work tree lacks."""
    if not behind or not names:
        return []
    what = names[0] + (f" or {len(names) - 1} more" if len(names) > 1 else "")
    words = f"this work tree lacks {behind} commit{'s' * (behind != 1)} of '{trunk}' that changed {what}"
    return [Need("old-copy", names[0], words, "git coord sync --pull", "commits of this clone")]


def of_conflicts(conflicts: list[Conflict], more: int) -> list[Need]:
    """Work under way that will conflict: a row for each two pieces of work; of many the first ones."""
    from gitcoord.radar.model import by_pair, sentence  # where nothing conflicts, nothing is loaded

    pairs = by_pair(conflicts)
    found = [
        Need(
            "conflict", rows[0].path, sentence(rows), f"land one of them first: git coord land; or wait for it: git claim --wait 30m {shell_word(rows[0].path)}",
            "work trees and branches of this clone", rows[0].sides[0].agent,
        )
        for rows in pairs[:_MOST_PAIRS]
    ]  # fmt: skip
    rest = len(pairs[_MOST_PAIRS:])
    if rest or (more and found):
        words = [f"{rest} more pairs of work under way"] if rest else []
        words += [f"{more} more file{'s' * (more != 1)}"] if more else []
        what = " and ".join(words)
        found.append(
            Need("conflict", "", f"{what} will conflict", "git coord radar", "work trees and branches of this clone")
        )
    return found


def of_deploys(deploys: Iterable[Deploys]) -> list[Need]:
    """Targets whose last deploy did not succeed."""
    found = []
    for row in deploys:
        if not row.last.succeeded:
            how = "was interrupted" if row.last.outcome == INTERRUPTED else "failed"
            good = f"; the last good one is {row.good.commit[:12]}" if row.good is not None else ""
            words = f"the last deploy to {row.target}, by {row.last.agent}, {how}{good}"
            found.append(
                Need(
                    "deploy",
                    f"@deploy/{row.target}",
                    words,
                    "git coord deploys",
                    f"event {row.last.seq}",
                    since=row.last.at,
                )
            )
    return found
