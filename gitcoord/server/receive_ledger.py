"""A push of the ledger: a legal chain of events, whose trees the server makes again.

Nothing of what is pushed is believed: each commit must be, byte for byte, what its event and the state before it make.
So blobs and trees need not be read: they are the ones that the server would have written itself.
"""

from __future__ import annotations

from gitcoord.base.codec import UPGRADE_SERVER, Malformed, NewerVersion, Record, encode_file
from gitcoord.base.errors import CouldNotJudge, Refusal, Refused, UsageError, refused
from gitcoord.base.names import LANES, LEDGER, Oid, check_word, is_oid, printable
from gitcoord.git.commands.objects import rev_list
from gitcoord.git.loose_writer import ObjectHasher
from gitcoord.git.store import Object, RefUpdate, Store
from gitcoord.git.symrefs import follow
from gitcoord.git.tree import TreeEditor, Trees
from gitcoord.ledger.commit import Commit
from gitcoord.ledger.context import Context
from gitcoord.ledger.event import Event, Illegal, commit_bytes, effects, refs_of
from gitcoord.ledger.format import FORMAT_MINOR, format_record
from gitcoord.ledger.kinds import agents_in, kind_of
from gitcoord.ledger.sessions import Heartbeat, decode_heartbeat, encode_heartbeat
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.ledger.state import Changes, State
from gitcoord.server.limits import Limits, read_limits
from gitcoord.server.retrace import chains, retrace
from gitcoord.server.signatures import require_signature, signing_on, split_signature
from gitcoord.server.world import ServerWorld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.fsck import Replay
    from gitcoord.server.accounts import Pusher

_DAY = 86400
_MOST_COMMITS = 1000


class Pushed:
    """A commit of the push, with its event and its bytes without the signature."""

    __slots__ = ("commit", "event", "payload", "signature")

    def __init__(self, found: Object) -> None:
        self.payload, self.signature = split_signature(found.data)
        self.commit = Commit(found, "a pushed commit")
        self.event: Event = self.commit.event


class LedgerPush:
    """The changes that a push makes to the ledger, as far as they were judged."""

    def __init__(
        self, ctx: Context, pusher: Pusher, move: RefUpdate, beats: dict[str, Oid], code: list[RefUpdate]
    ) -> None:
        """`beats`: the heartbeats that the push leaves, by agent; `code`: the other refs that it moves."""
        self._ctx = ctx
        self._pusher = pusher
        self._move = move
        self._beats = beats
        self._code = code
        self.pushed: list[Pushed] = []
        self.wanted: dict[str, Oid | None] = {}  # claim refs that must be there, or gone, afterwards
        self.demanded: dict[str, Heartbeat] = {}  # heartbeats that must be replaced, by agent
        self._state = State()
        self._base = ""  # the event that is here on which the push builds

    # --- reading

    def read(self, limits: Limits) -> list[Event]:
        """The events of the push, oldest first; the existing ledger is not read."""
        move = self._move
        if not move.new:
            raise refused("ledger", f"{LEDGER} may not be deleted", "look at it: git coord log")
        found: list[Pushed] = []
        oid = move.new
        bases = self._bases()
        while oid not in bases:
            if len(found) >= limits.events:
                raise refused(
                    "limit",
                    f"the push brings more than {limits.events} events, or does not build on the ledger that is here",
                    "fetch and try again",
                    f"the server's administrator may raise gitcoord.server.{limits.events_key}",
                )
            found.append(self._read(oid, limits))
            if len(found) == 1 and self._vouches(found[0]):
                limits = read_limits(self._ctx, beginning=True)
            parents = found[-1].commit.parents
            if len(parents) > 1:
                raise refused("ledger", f"{oid[:12]} is a merge: the ledger has none")
            if not parents:
                if move.old:
                    raise refused("ledger", "the push does not build on the ledger that is here", "fetch and try again")
                break
            oid = parents[0]
        self._base = oid if move.old else ""
        self.pushed = found[::-1]
        if self._base != move.old and not (self.pushed and self.pushed[-1].event.kind == "epoch"):
            raise refused("ledger", "the push does not build on the ledger that is here", "fetch and try again")
        return [pushed.event for pushed in self.pushed]

    def _bases(self) -> list[Oid]:
        if not self._move.old:
            return []
        from gitcoord.server.receive_history import floors

        return floors(self._ctx, self._move.old)

    def _vouches(self, last: Pushed) -> bool:
        return last.event.kind == "epoch" and self._pusher.actor(last.event.agent).person

    @property
    def restores_history(self) -> bool:
        """Return whether the push brings lost events back, with an epoch on top. An epoch alone brings none back."""
        last = self.pushed[-1].event.kind if self.pushed else ""
        return bool(self._move.old) and last == "epoch" and (len(self.pushed) > 1 or self._base != self._move.old)

    def _read(self, oid: Oid, limits: Limits) -> Pushed:
        limits.check_size(self._ctx, oid, "commit", f"the ledger commit {oid[:12]}")
        try:
            found = self._ctx.store.read([oid])[0]
            assert found is not None
            return Pushed(found)
        except Malformed as error:
            hints = (UPGRADE_SERVER,) if isinstance(error, NewerVersion) else error.hints
            raise refused("ledger", f"{oid[:12]} is no event of the ledger: {error.message}", *hints) from None

    # --- judging

    def judge(self) -> None:
        """Raise Refused unless the push is a legal chain of events by agents for which this account may act."""
        for pushed in self.pushed:
            self._require_canonical(pushed)
        if not self._move.old:
            self._begin()
            return
        if self.restores_history:
            self._restore_history()
            return
        snapshot = read_snapshot(self._ctx, trusting=True)
        if snapshot.head != self._move.old:
            raise refused("race", "the ledger moved meanwhile", "fetch and try again")
        if format_record(snapshot.state).minor > FORMAT_MINOR:
            raise CouldNotJudge("this ledger has a newer format", hints=(UPGRADE_SERVER,))
        self._follow(snapshot)

    def get(self, key: str) -> Record | None:
        """A file of the ledger as it is after the push."""
        return self._state.get(key)

    def _require_canonical(self, pushed: Pushed) -> None:
        """Raise Refused unless the commit is exactly the one that gitcoord makes of its event."""
        event, parents = pushed.event, pushed.commit.parents
        try:
            check_word(event.nonce, "nonce")
        except UsageError as error:
            raise refused("ledger", f"event {event.seq}: {error.message}") from None
        if pushed.payload != commit_bytes(event, pushed.commit.tree, parents[0] if parents else None):
            raise refused("ledger", f"event {event.seq} is not written as gitcoord writes it")

    def _require_author(self, pushed: Pushed) -> None:
        event = pushed.event
        self._pusher.require(event.agent, f"event {event.seq} is by '{event.agent}'")
        if event.kind == "inherit":
            for holder in agents_in(kind_of(event.kind), event.body):
                self._pusher.require(holder, f"event {event.seq} goes on with work of '{holder}'")
        if abs(event.at - self._ctx.host.wall()) > _DAY:
            raise refused(
                "clock", f"event {event.seq} is dated more than a day off the server's clock", "set the clock"
            )
        if signing_on(self._ctx):
            require_signature(self._ctx, pushed.payload, pushed.signature, event.agent, event.seq)

    def _begin(self) -> None:
        """The first push of a ledger may bring a whole history. Events of agents for whom this account may not act are brought by a
        person only, who answers for them: the last command is its own.

        The first event grants nothing, so its author may have no agent's name yet.
        """
        last = self.pushed[-1]
        for pushed in self.pushed[-1 - last.event.part :]:
            if pushed.event.kind != "init":
                self._require_author(pushed)
        if any(p.event.kind != "init" and not self._pusher.may(p.event.agent) for p in self.pushed):
            from gitcoord.server.receive_history import require_person, require_signatures

            require_person(self._pusher, last.event.agent)
            require_signatures(self._ctx, [p for p in self.pushed if p.event.kind != "init"])
        from gitcoord.ledger.fsck import Replay  # once in a ledger's life

        self._take_history(Replay(), None)

    def _restore_history(self) -> None:
        """Judge a push that brings lost events back. A person vouches for them with an epoch on top."""
        from gitcoord.server.receive_history import replay_below, require_above, require_person, require_signatures

        last = self.pushed[-1]
        self._require_author(last)
        require_person(self._pusher, last.event.agent)
        require_signatures(self._ctx, self.pushed[:-1])
        if self._ctx.store.target(LEDGER) != self._move.old:
            raise refused("race", "the ledger moved meanwhile", "fetch and try again")
        require_above(self._ctx, self._move.old, last)
        outcome = replay_below(self._ctx, self._base)
        before = dict.fromkeys(outcome.grants)
        self._take_history(outcome, Commit(self._ctx.store.read([self._base])[0], LEDGER).tree)
        self.wanted = {**before, **self.wanted}

    def _take_history(self, outcome: Replay, tree: Oid | None) -> None:
        from gitcoord.server.receive_history import judge_history

        editor = self._editor(Trees(self._ctx.store))
        judge_history(outcome, tree, self.pushed, lambda *what: self._require_tree(editor, *what))
        self._state = outcome.state
        self.wanted = dict(outcome.grants)

    def _follow(self, snapshot: Snapshot) -> None:
        """Judge each command on the state after the one before it. Files are read from the ledger that is here, never from
        the push."""
        groups = chains([pushed.event for pushed in self.pushed])
        if isinstance(groups, Refusal):
            raise Refused(groups)
        trunk = follow(self._ctx.repo, f"refs/heads/{format_record(snapshot.state).sync}", files=self._has_files())[-1]
        world = ServerWorld(self._ctx, snapshot, next((m for m in self._code if m.ref == trunk), None))
        editor, tree, self._state = self._editor(snapshot.trees), snapshot.commit.tree, snapshot.state
        rows = iter(self.pushed)
        for group in groups:
            mine = [next(rows) for _ in group]
            for pushed in mine:
                self._require_author(pushed)
            try:
                after = self._retrace(world, group)
                for pushed in mine:
                    tree = self._advance(editor, tree, pushed)
            except Illegal as error:
                raise refused("ledger", error.message) from None
            assert self._state.seq == after.seq

    def _has_files(self) -> bool:
        return self._ctx.settings.get("extensions.refstorage", "files").lower() == "files"

    def _advance(self, editor: TreeEditor, tree: Oid, pushed: Pushed) -> Oid:
        """Make the tree after one more event, and compare it with the pushed one."""
        changes = effects(self._state, pushed.event)
        for ref, present in refs_of(self._state, pushed.event).items():
            self.wanted[ref] = pushed.commit.oid if present else None
        self._state = self._state.patched(changes)
        self._state.seq = pushed.event.seq
        return self._require_tree(editor, tree, pushed, changes)

    def _retrace(self, world: ServerWorld, group: list[Event]) -> State:
        agent, beats = group[0].agent, world.snapshot.heartbeats
        actor = self._pusher.actor(agent)
        if kind_of(group[0].kind).personal and not actor.person:
            raise refused("person", f"only a person's account may push '{group[0].kind}' events")
        self._require_commits(group)
        answer = retrace(self._state, group, actor, world)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        after, moved = answer
        for beat in moved:
            if beat.judged or beat.killed:
                self.demanded[beat.agent] = beat
                beats[beat.agent] = beat._replace(oid=self._oid_of("blob", encode_heartbeat(beat)))
        if any(event.kind == "start" for event in group) and agent in self._beats:
            found = self._ctx.store.read([self._beats[agent]])[0]
            if found is not None and found.kind == "blob" and len(found.data) < 4096:
                try:
                    beats[agent] = decode_heartbeat(found.oid, found.data)
                except Malformed:
                    pass  # refused with the session refs
        return after

    # --- commits that events speak of

    def _require_commits(self, group: list[Event]) -> None:
        """Raise Refused unless others can fetch the commits that an event names."""
        named = {commit for event in group for commit in kind_of(event.kind).commits(event)}
        if not named:
            return
        reached = [
            "--not",
            "--exclude=gitcoord",
            "--branches",
            "--tags",
            f"--glob={LANES}*",
            *(m.new for m in self._code if m.new),
        ]
        sound = all(is_oid(oid) for oid in named) and len(named) <= _MOST_COMMITS
        lacking = rev_list(self._ctx.repo.env, *sorted(named), *reached, most=1) if sound else None
        if lacking is None or lacking.code or lacking.out:
            what = ", ".join(printable(oid[:12]) for oid in sorted(named))
            raise refused(
                "push-first", f"the server does not have {what}, on which this relies", "push it first: git push"
            )

    # --- trees

    def _editor(self, trees: Trees) -> TreeEditor:
        hasher: Store = ObjectHasher(self._ctx.store.oid_length)  # type: ignore[assignment]
        return TreeEditor(hasher, trees)

    def _oid_of(self, kind: str, data: bytes) -> Oid:
        return ObjectHasher(self._ctx.store.oid_length).write(kind, data)

    def _require_tree(self, editor: TreeEditor, tree: Oid | None, pushed: Pushed, changes: Changes) -> Oid:
        blobs = {
            key: None if record is None else self._oid_of("blob", encode_file(key, record))
            for key, record in changes.items()
        }
        new = editor.edit(tree, blobs) or self._oid_of("tree", b"")
        if new != pushed.commit.tree:
            raise refused(
                "ledger", f"the tree of event {pushed.event.seq} is not what the event makes of the one before"
            )
        return new
