"""The use case of landing: in its turn, a branch is brought onto trunk, checked, judged, and on record.

Steps, and what a crash after each leaves: the turn (it expires), what would land (objects that nothing refers to), the check (a scratch
work tree, which the next landing removes), `landing` (on record, ends with the next landing), trunk moved (whoever lands next
writes `land`), `land`. At a remote the last three are one push.
"""

from __future__ import annotations

from gitcoord.base.errors import Contention, GitcoordError, Refused, StoreError, refused
from gitcoord.base.names import LANES, LEDGER, printable
from gitcoord.claims.model import Claim, turn_item
from gitcoord.gates.client_gate import Gate
from gitcoord.gates.gate import Verdicts
from gitcoord.git.store import Delete, RefUpdate, SwapFailed, Update, Verify
from gitcoord.landing.bring import Brought, Order, bring, contains, lost_signatures, names_of
from gitcoord.landing.events import land as land_event
from gitcoord.landing.events import landing as landing_event
from gitcoord.landing.events.land import Land
from gitcoord.landing.events.landing import Begin
from gitcoord.landing.follow import Following, finish_following
from gitcoord.landing.model import (
    REBASE,
    OpenLanding,
    open_landing,
    open_landings,
    own_turn,
)
from gitcoord.landing.releases import Releases, released
from gitcoord.landing.scratch import remove_abandoned
from gitcoord.landing.trunk import Trunk
from gitcoord.landing.turn import changed_paths, turn_over
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Decision
from gitcoord.ledger.remote.fetch import store_of
from gitcoord.ledger.remote.git_remote import LANDED, RACED
from gitcoord.ledger.remote.transaction import push_error
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import State
from gitcoord.ledger.transaction import transact
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Any, Callable

Row = dict[str, Any]
_TRIES = 20


class Conflict(GitcoordError):
    """The branch and trunk change the same lines, or files in ways that cannot both hold."""

    exit_code = 1
    code = "conflict"


class NotAllowed(GitcoordError):
    """A rule refuses what would land; `outcome` says which."""

    exit_code = 1
    code = "refused"

    def __init__(self, outcome: Verdicts) -> None:
        super().__init__(outcome.refused[0].message)
        self.outcome = outcome


class AskFirst(GitcoordError):
    """The remote is to be asked first: what this clone knows of it is too old to land by, or not enough. The landing is begun anew then."""


class _TrunkMoved(Exception):
    """Somebody else moved trunk meanwhile: it is brought onto the new tip, in the same turn."""


class _NotThere(Exception):
    """Somebody has removed the ref of its lane, which the push would remove."""


class Landing:
    """One landing, in its turn."""

    def __init__(
        self,
        ctx: Context,
        actor: Actor,
        trunk: Trunk,
        order: Order,
        task: str,
        renumber: Callable[[str, str], str] | None = None,
    ) -> None:
        """`renumber`: gives the commit in which added files have their numbers, for one that was brought onto this tip of trunk."""
        self._renumber = renumber
        self.ctx = ctx
        self.actor = actor
        self.order = order
        self._task = task
        self.trunk = trunk
        self._made = ("", "")  # trunk, and what it would be
        self._judged = ""  # the ledger's head by which `new` was judged
        self.pushed = False  # one that did not ask before has begun its push
        self.landed = False  # trunk has it: from then on Ctrl-C waits for the answer
        self.warnings: list[Verdicts] = []
        self.intents: list[Claim] = []  # of others, on what has landed
        self.lost = 0  # signatures
        self.excused: set[str] = set()  # paths that a dry run would claim, or wait for, in its turn
        self.announced = ""  # its commit in a lane, where the remote has it: nobody needs that once it has landed

    def run(
        self, check: Callable[[str, str], list[Row]], *, takes: bool = False, age: int = 0, asked: bool = True
    ) -> Row:
        """Land. `check` runs the checks on a commit that follows the old tip, and raises where one fails. Conflict, NotAllowed, Refused. `takes`: the turn is taken
        with the first event, where it is free; Refused (held, kept) where it is not. `age`: see `Trunk.fetch`; a check on an old tip would be in vain.
        `asked`: False where this clone's trunk and ledger may be old: AskFirst where they are, or do not allow it, or there is nothing to land."""
        for _ in range(_TRIES):
            old, new = self.prepare(age)
            if not asked and new == old:
                raise AskFirst("trunk has it already, as far as this clone knows")
            checks = check(old, new) if new != old else []  # else trunk has it already
            try:
                moved = self._commit(old, new, checks, takes=takes, asked=asked)
            except _TrunkMoved:
                if not asked:
                    raise AskFirst(f"{self.trunk.name} is another one here by now") from None
                self.ctx.tell(f"{self.trunk.name} has moved meanwhile: once more")
                continue
            if self.ctx.may_have_news():
                from gitcoord.claims.news import forget_given_back

                forget_given_back(self.ctx, self.actor.agent, moved["released"])
            return {
                "branch": self.order.branch, "trunk": self.trunk.name, "tip": self.order.tip, "old": old,
                "new": new, "how": self.order.how, "checks": checks, "task": self._task,
                "already": new == old, **moved,
            }  # fmt: skip
        raise Contention(f"{self.trunk.name} moved {_TRIES} times meanwhile", hints=("try again",))

    def prepare(self, age: int = 0) -> tuple[str, str]:
        """The tip of trunk, and what it would be afterwards, judged. `age`: see `Trunk.fetch`. Conflict, NotAllowed."""
        old = self.trunk.fetch(age)
        if old == self._made[0]:
            return self._made  # judged again when trunk moves, if the ledger has moved since
        brought = self.bring(old)
        if brought.conflicts:
            raise Conflict(
                " conflicts with ".join(names_of(self.order, self.ctx.remote)),
                data={"files": list(brought.conflicts), "trunk": old, "commit": brought.at},
            )
        self.lost = brought.lost
        if brought.new != old:
            self._judge(read_snapshot(self.ctx), old, brought.new)
        self._made = old, brought.new
        return self._made

    def bring(self, old: str) -> Brought:
        """The branch's work on top of this tip of trunk, with its numbers."""
        brought = bring(self.ctx, self.order, old)
        if self._renumber is None or brought.new in ("", old):
            return brought
        new = self._renumber(old, brought.new)
        if new == old:
            return Brought(old)
        if new != brought.new == self.order.tip and self.order.how == REBASE:  # a fast-forward, but for its last commit
            return brought._replace(new=new, lost=lost_signatures(self.ctx, self.order, [brought.new]))
        return brought._replace(new=new)

    def _judge(self, snapshot: Snapshot, old: str, new: str) -> None:
        """As every push is judged, by the policy of trunk before it; NotAllowed where a rule refuses."""
        gate = Gate(self.ctx, lambda: self.actor, snapshot)
        outcome = gate.landing(self.ctx.remote, RefUpdate(self.trunk.ref, old, new))
        if self.excused:
            kept = [v for v in outcome.verdicts if v.rule not in ("held", "unclaimed") or v.path not in self.excused]
            outcome = outcome._replace(verdicts=kept)
        if outcome.refused:
            raise NotAllowed(outcome)
        self.warnings = [outcome] if outcome.verdicts else []
        self._judged = snapshot.head

    def _judge_again(self, snapshot: Snapshot, old: str, new: str) -> None:
        if snapshot.head != self._judged and old != new:
            self._judge(snapshot, old, new)

    # --- moving trunk

    def _commit(self, old: str, new: str, checks: list[Row], *, takes: bool, asked: bool) -> Row:
        order, snapshot = self.order, read_snapshot(self.ctx)
        if any(not row.announced and row.agent != self.actor.agent for row in open_landings(snapshot.state)):
            # Its process died after this one began to wait: `landing` drops its record, so what is on trunk gets its `land` before.
            finish_open(self.ctx, self.actor, self.trunk)
            snapshot = read_snapshot(self.ctx)
        releases = Releases(self.ctx, snapshot, self.actor, self.trunk.name)
        touched = {name for tip in {order.tip, new} for name in changed_paths(self.ctx, old, tip)}
        items = releases.keys(old, new, order.tip, touched, self._task)
        self.intents = releases.intents(touched) if old != new else []
        if old == new and self._task:
            raise refused(
                "no-work",
                f"{printable(order.branch)} has nothing that is not on {self.trunk.name} already: {self._task} is not done by that",
                f"commit the work first, then: git coord land --task {self._task}",
                f"if its work has landed before: git coord task complete {self._task} -m '...' --not-done none",
            )
        if old == new and not released(items):
            return {"seq": 0, "released": []}  # there is nothing to put on record
        if takes:
            items = tuple(dict.fromkeys([(*turn_item(self.trunk.name), self.actor.agent), *items]))
        begin = Begin(
            self.actor, self.trunk.name, order.branch, order.tip, old, new, order.how, checks, self._task, items
        )._replace(takes=takes)
        if self.ctx.remote and store_of(self.ctx).remote.atomic:
            return self._commit_together(begin, asked=asked)
        seq = int(str(transact(self.ctx, landing_event.decide, begin)["seq"]))
        moved = {} if old == new else self._push(begin) if self.ctx.remote else self._move_here(begin, seq)
        result = transact(self.ctx, land_event.decide, Land(self.actor, self.actor.agent, seq))
        gone = released(items) if result["landed"] else []  # the turn was lost meanwhile, and the record with it
        return {**moved, "seq": seq, "released": gone, **_told(result)}

    def _commit_together(self, begin: Begin, *, asked: bool) -> Row:
        """Events and trunk in one atomic push to the remote. `asked`: False: only that push, if the ledger that is known here allows it."""
        heads = [""]

        def rule(state: State, command: Begin, world: World) -> Decision:
            if self.pushed:
                raise AskFirst("as the push found")
            snapshot: Snapshot = world.snapshot  # type: ignore[attr-defined]
            # Trunk was fetched with the ledger; or the push was refused although the ledger is as it was.
            again = snapshot.head == heads[-1]
            if self.trunk.known() != begin.old or (again and self.trunk.fetch() != begin.old):
                raise _TrunkMoved
            if again and lane:
                raise _NotThere
            heads.append(snapshot.head)
            self._judge_again(snapshot, begin.old, begin.new)
            try:
                decision = landing_event.decide(state, command, world)
            except Refused as error:
                raise error if asked else AskFirst(error.message) from None  # neither confirmed nor counted
            self.pushed = not asked
            return decision

        moving = RefUpdate(self.trunk.ref, begin.old, begin.new) if begin.old != begin.new else None
        lane = (Delete(LANES + self.announced, self.announced),) if self.announced and moving is not None else ()
        try:
            result = self._move_together(rule, begin, moving, lane)
        except _NotThere:
            lane = ()
            result = self._move_together(rule, begin, moving, lane)
        if lane:
            self.announced = ""
        if self.trunk.known() != begin.new:
            self.trunk.fetch()  # git notes what it has pushed, if the settings let it
        return {"seq": result["seq"], "released": released(begin.items), **_told(result)}

    def _move_together(
        self,
        rule: Callable[[State, Begin, World], Decision],
        begin: Begin,
        moving: RefUpdate | None,
        beside: tuple[Delete, ...],
    ) -> Row:
        host = self.ctx.host
        before = host.one_shot
        host.one_shot = True  # Ctrl-C that comes during the push waits for the answer, if it lands
        try:
            result = transact(self.ctx, rule, begin._replace(together=True), moving=moving, beside=beside)
        except BaseException:
            host.one_shot = before
            raise
        self.landed = True
        return result

    def _has_moved(self) -> None:
        """Called while interrupts are deferred: from now on they wait for the answer."""
        self.landed = self.ctx.host.one_shot = True

    def _push(self, begin: Begin) -> Row:
        """Trunk alone, where the remote takes no atomic pushes."""
        remote = store_of(self.ctx).remote
        self._judge_again(read_snapshot(self.ctx), begin.old, begin.new)  # a check may have taken long
        self.ctx.tell(f"not atomic here: '{remote.name}' takes one ref at a time")
        self.ctx.host.defer_interrupts(True)
        try:
            result = remote.push([RefUpdate(self.trunk.ref, begin.old, begin.new)])
            if result.kind == LANDED:
                self._has_moved()
            tip = self.trunk.fetch()
        except BaseException:
            if not self.landed:
                self.ctx.host.defer_interrupts(False)
            raise
        if result.kind == LANDED or contains(self.ctx, tip, begin.new):
            self._has_moved()
            return {}
        self.ctx.host.defer_interrupts(False)
        if result.kind == RACED or tip != begin.old:
            raise _TrunkMoved
        raise push_error(self.ctx, result)

    def _move_here(self, begin: Begin, seq: int) -> Row:
        """Trunk of this repository, in one swap that verifies the ledger by which it was judged."""
        ctx, ref = self.ctx, self.trunk.ref
        with Following(ctx, ref, begin.old, begin.new) as following, ctx.queue():
            for _ in range(_TRIES):
                ctx.store.refresh()
                snapshot = read_snapshot(ctx)
                found = open_landing(snapshot.state, begin.actor.agent)
                if (
                    found is None
                    or found.seq != seq
                    or own_turn(snapshot.state, begin.trunk, begin.actor.agent) is None
                ):
                    raise turn_over(begin.actor.agent)
                if ctx.store.target(ref) != begin.old:
                    raise _TrunkMoved
                self._judge_again(snapshot, begin.old, begin.new)
                ctx.host.defer_interrupts(True)
                try:
                    ctx.store.swap([Update(ref, begin.old, begin.new), Verify(LEDGER, snapshot.head)])
                except SwapFailed as failure:
                    ctx.store.refresh()
                    if ctx.store.target(ref) != begin.new:
                        ctx.host.defer_interrupts(False)
                        ctx.host.pause(0.02)
                        trouble = failure.message
                        continue
                self._has_moved()
                return {key: value for key, value in following.follow().items() if value}
        raise StoreError(
            f"git could not move {ref}: {trouble}: nothing has landed", hints=("then again: git coord land",)
        )


def _told(result: Row) -> Row:
    """The claims that the agent lost, and the requests of others that this landing granted."""
    return {key: result[key] for key in ("lost", "granted_to") if key in result}


def finish_open(ctx: Context, actor: Actor, trunk: Trunk) -> list[OpenLanding]:
    """Finish the landings that trunk contains and whose process has died; remove what such processes left in this clone. Gives those
    that were found on trunk."""
    remove_abandoned(ctx)
    snapshot = read_snapshot(ctx)
    if not ctx.remote:
        finish_following(ctx, trunk.ref)
    found: list[OpenLanding] = []
    under_way = [landing for landing in open_landings(snapshot.state) if not landing.announced]
    if under_way:
        trunk.fetch()
    on_trunk = ctx.world(snapshot).on_trunk([landing.new for landing in under_way])
    for landing in under_way:
        if landing.new in on_trunk:
            done = transact(ctx, land_event.decide, Land(actor, landing.agent, landing.seq))
            found += [landing] if done["landed"] else []
    return found
