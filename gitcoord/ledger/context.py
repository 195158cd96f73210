"""The context of a use case: the repository, its store and settings, and the host."""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.base.names import CONFIG, Oid
from gitcoord.git.config import Settings, parse_settings
from gitcoord.git.files import exists, inode, list_files, make_directory, read_file
from gitcoord.git.repo import Repo
from gitcoord.git.store import Store
from gitcoord.ledger.world import World
from gitcoord.startup.annotations import Callable, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.deadline import Deadline
    from gitcoord.git.locks.owners import LockNotes
    from gitcoord.git.locks.queue import QueuedLock
    from gitcoord.git.process import Child
    from gitcoord.git.store import RefUpdate
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.ledger.transaction import Authority

    class Host(Protocol):
        """Clocks and randomness of this machine. Tests hand in their own."""

        boot: str

        def wall(self) -> int:
            """Seconds since 1970, for people and for the skew rule."""

        def mono(self) -> int:
            """Milliseconds on a clock that never steps and does not count sleep."""

        def random(self) -> str:
            """32 hex digits nobody has seen before."""

        def pause(self, seconds: float) -> None:
            """Let others go first."""

        def defer_interrupts(self, on: bool) -> None:
            """Defer Ctrl-C while on: a grant that was made is reported, and one that was not is withdrawn."""

        one_shot: bool  # the process exits after one result


QUEUE_SECONDS = 5.0


def _nobody(words: str) -> None:
    """The default of `tell`: discard."""


class Context:
    """One repository, opened."""

    def __init__(
        self,
        repo: Repo,
        settings: Settings,
        store: Store,
        host: Host,
        make_world: Callable[[Context, Snapshot, RefUpdate | None], World],
        make_authority: Callable[[Context], Authority] | None = None,
    ) -> None:
        """`make_authority`: of a remote that decides; not needed where this repository does."""
        self.repo = repo
        self.settings = settings
        self.store = store
        self.host = host
        self.make_world = make_world
        self.make_authority = make_authority
        authority = settings.get("gitcoord.authority")
        self.remote = (
            "" if authority == "local" else authority
        )  # the remote that decides; '' where this repository does
        self._notes: LockNotes | None = None
        self.started: dict[tuple[str, ...], Child] = {}  # children whose answer will be asked for
        self.tell: Callable[[str], None] = _nobody  # who listens while something takes long
        self._deadline: dict[str, Deadline] = {}
        self.snapshot: Snapshot | None = None  # that was read last

    def world(self, snapshot: Snapshot, moving: RefUpdate | None = None) -> World:
        """The world that rules ask beside this snapshot's state, from now on. `moving`: trunk, as this transaction moves it."""
        return self.make_world(self, snapshot, moving)

    @property
    def local(self) -> Store:
        """The store of this repository itself, whichever the authority."""
        found: Store = getattr(self.store, "local", self.store)
        return found

    def write_heartbeat(self, data: bytes) -> Oid:
        """A heartbeat's object: a blob; where nothing but branches may be pushed, a commit that says the same."""
        if not (self.remote and self.settings.get("gitcoord.namespaces") == "branches"):
            return self.store.write("blob", data)
        tree, who = self.store.write("tree", b""), f"gitcoord <beat@gitcoord.invalid> {self.host.wall()} +0000"
        return self.store.write("commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\n".encode() + data)

    def scratch(self, name: str) -> str:
        """A file of local notes; its directory is made on the way."""
        path = f"{self.repo.scratch}/{name}"
        directory = path.rpartition("/")[0]
        try:
            make_directory(directory)
        except OSError as error:
            raise StoreError(f"cannot write in {directory}: {error.strerror}") from None
        return path

    def may_have_news(self) -> bool:
        """Return whether somebody waits for a claim, by the ledger as it was read last or by the notes of this clone."""
        waits = self.snapshot is not None and bool(self.snapshot.state.names("waits"))
        return waits or bool(list_files(f"{self.repo.scratch}/waiting"))

    def may_have_warnings(self) -> bool:
        """Return whether an agent of this clone is to be told that its work will conflict with another's."""
        return bool(list_files(f"{self.repo.scratch}/radar/news"))

    def may_finish_landings(self) -> bool:
        """Return whether a landing is on record whose end is not, by the ledger as it was read last."""
        return self.snapshot is not None and bool(self.snapshot.state.names("landings"))

    @property
    def notes(self) -> LockNotes:
        """About the git processes of ours that lock refs."""
        if self._notes is None:
            from gitcoord.git.locks.owners import LockNotes

            self._notes = LockNotes(self.repo.common_dir, self.repo.scratch, self.host.boot)
        return self._notes

    def queue(self) -> QueuedLock:
        from gitcoord.git.locks.queue import QueuedLock

        return QueuedLock(self.scratch("queue.lock"), QUEUE_SECONDS, tell=self.tell)

    def listen(self, tell: Callable[[str], None]) -> None:
        """Report slow steps to `tell`."""
        self.tell = tell
        if self.remote:
            self.deadline(self.remote).tell = tell

    def deadline(self, remote: str) -> Deadline:
        """The time that this command waits for a remote. All its requests to the authority share one limit."""
        authority = getattr(self.store, "remote", None)
        if authority is not None and remote == self.remote:
            return authority.deadline  # type: ignore[no-any-return]
        if remote not in self._deadline:
            from gitcoord.ledger.remote.mirror_store import deadline_for

            self._deadline[remote] = deadline_for(remote, self.repo, self.settings)
            self._deadline[remote].tell = self.tell
        return self._deadline[remote]

    def policy_setting(self, name: str) -> str:
        """`[gitcoord] <name>` of the policy in the work tree; of that of HEAD or origin's default branch where the work tree has
        none; '' where it does not say."""
        if not self.repo.worktree:
            return ""
        from gitcoord.git.commands.settings import get_setting, list_settings

        path = f"{self.repo.worktree}/{CONFIG}"
        if exists(path):
            return get_setting(self.repo.env, f"gitcoord.{name}", file=path).text.strip()
        found = self.local.read([f"{ref}:{CONFIG}" for ref in ("HEAD", "refs/remotes/origin/HEAD")])
        blob = next((policy.oid for policy in found if policy is not None), "")
        if not blob:
            return ""
        return dict(parse_settings(list_settings(self.repo.env, blob=blob).out)).get(f"gitcoord.{name}", "")

    def may_name_another_ledger(self) -> bool:
        """Return whether the policy in the work tree lacks this ledger's root: `named_ledger` then looks closer."""
        root = self.settings.get("gitcoord.root").encode()
        if not root or not self.repo.worktree:
            return False
        text = read_file(f"{self.repo.worktree}/{CONFIG}", 1 << 20)
        return root not in text and b"root" in text.lower()

    def is_authority(self, record: dict[str, object]) -> bool:
        """Return whether the ledger names this authority. A remote has many addresses: `init` has compared them."""
        if self.remote:
            return "remote" in record or self.reads_only
        return record == self.authority()

    @property
    def reads_only(self) -> bool:
        """Return whether this clone only reads a remote's ledger, as CI does."""
        return self.settings.flag("gitcoord.readonly", default=False)

    def authority(self) -> dict[str, object]:
        """The record that names this repository as the authority: its directory's inode, which a copy does not share."""
        return {"local": inode(self.repo.common_dir)}
