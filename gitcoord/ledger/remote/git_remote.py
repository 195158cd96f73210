"""A remote authority: `git push` and `git fetch`, and the meaning of their output.

A push is a compare-and-swap: each ref is sent with its expected value, and all refs move or none. git's output is classified
into a few results, each of which needs another reaction: try again, give up, fetch later, find out what happened.
"""

from __future__ import annotations

from gitcoord.base.names import CLAIMS, LANES, LEDGER, SESSIONS, Oid, RefName
from gitcoord.git.commands.remotes import fetch_own, look_at_own_refs, push_own
from gitcoord.git.deadline import Deadline, fixed
from gitcoord.git.store import RefUpdate
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNotes

BRANCH_SESSIONS = "refs/heads/gitcoord-sessions/"

LANDED, RACED, REJECTED, FAILED, UNREACHABLE, UNKNOWN, NO_LEDGER, BEHIND, LOCKED, LOCAL_ERROR = (
    "landed", "lost", "host", "failed", "unreachable", "unknown", "none", "behind", "locked", "own",
)  # fmt: skip

# Words for a ref that was not where it was expected: by the client, by the server, in older and newer git.
_MOVED = (
    "stale info", "fetch first", "non-fast-forward", "already exists", "failed to update ref", "cannot lock ref",
    "unable to migrate objects",  # a gc there removed a directory of objects meanwhile
    "failed to lock", "unable to lock", "incorrect old value", "reference does not exist", "unable to resolve reference",
    "reference conflict", "needs force",
)  # fmt: skip
_FOLLOWS = ("atomic push fail", "atomic transaction failed", "transaction aborted")
# Words of a connection that never came about: nothing was sent, so nothing can have happened.
_NO_CONTACT = (
    "Could not read from remote repository", "unable to access", "unable to look up", "unable to connect",
    "does not appear to be a git repository", "upon initial contact", "unable to fork", "' not found",
    "Authentication failed", "could not read Username", "could not read Password", "No such remote", "No route to host",
    "access denied or repository not exported",
)  # fmt: skip
# Words of a git that could not keep here what was sent: a prune that removes empty directories meanwhile, a full disk.
_OWN_TROUBLE = (
    "nable to create temporary file", "failed to write object", "unable to write file", "unable to write loose object",
    "cannot store pack file", "cannot store index file", "unable to rename temporary", "unable to create directory",
    "insufficient permission for adding an object", "unable to create leading directories", "unable to open object pack directory",
)  # fmt: skip
# Lines that git prints for every broken connection.
_IN_GENERAL = ("Could not read from remote repository", "Please make sure", "and the repository exists")
_WORDS = 2000
LOOKING, CHANGING, JOINING = 10.0, 30.0, 60.0  # seconds, for all that a command asks there


class RemoteResult(NamedTuple):
    """The result of a push or fetch: its kind, and the words of git or of the server."""

    kind: str
    words: str = ""


class GitRemote:
    """A remote by its name in git's settings. `branches`: it takes nothing but branches. `atomic`: all refs or none."""

    def __init__(
        self,
        env: dict[bytes, bytes],
        name: str,
        *,
        branches: bool = False,
        atomic: bool = True,
        deadline: Deadline | None = None,
    ) -> None:
        """`deadline`: how long to wait for the server."""
        self.name = name
        self.branches = branches
        self.atomic = atomic
        self.notes: LockNotes | None = None  # records which process owns which lock; None in some tests
        self.along = (
            ""  # a refspec of the user's that is fetched with the ledger, '' for none: both are then of the same moment
        )
        self.along_at = 0  # when that fetch began, on the host's monotonic clock
        self._env = env
        self.deadline = deadline or Deadline(name, fixed(JOINING))

    def takes(self, ref: RefName) -> bool:
        """Return whether the remote keeps this ref."""
        own = ref.startswith((CLAIMS, LANES)) and not self.branches
        return ref == LEDGER or ref.startswith((SESSIONS, "refs/heads/")) or own

    def there(self, ref: RefName) -> RefName:
        """The ref's name at the remote."""
        return BRANCH_SESSIONS + ref.removeprefix(SESSIONS) if self.branches and ref.startswith(SESSIONS) else ref

    def push(self, moves: Iterable[RefUpdate], options: tuple[str, ...] = ()) -> RemoteResult:
        """Move all these refs at the remote, or none."""
        rows = [m for m in moves if self.takes(m.ref) and (m.old or m.new)]
        if not rows:
            return RemoteResult(LANDED)
        with self.deadline.request(changes=True):
            if self.deadline.is_over:
                return RemoteResult(UNREACHABLE, self.deadline.message)
            return self._answered(self._push_rows(rows, options))

    def _answered(self, report: RemoteResult) -> RemoteResult:
        if report.kind not in (UNREACHABLE, UNKNOWN):
            self.deadline.answered()
        return report

    def _push_rows(self, rows: list[RefUpdate], options: tuple[str, ...]) -> RemoteResult:
        if self.atomic or len(rows) < 2:
            return self._push(rows, options)
        # Without atomic pushes: a heartbeat that moved alone is harmless, and the next writer fixes claim refs that
        # did not follow the ledger.
        beats, ledger = ([m for m in rows if m.ref.startswith(SESSIONS)], [m for m in rows if m.ref == LEDGER])
        for part in filter(None, (beats, ledger)):
            report = self._push(part, options)
            if report.kind != LANDED:
                return report
        claims = [m for m in rows if m not in beats and m not in ledger]
        followed = self._push(claims, options) if claims else RemoteResult(LANDED)
        return RemoteResult(LANDED) if ledger else followed

    def _push(self, moves: list[RefUpdate], options: tuple[str, ...]) -> RemoteResult:
        rows = [(self.there(m.ref), m.old, m.new) for m in moves]
        code, out, complaint = push_own(
            self._env, self.deadline, self.notes, self.name, rows, atomic=self.atomic, options=options
        )
        return parse_push(code, out.decode("utf-8", "replace"), complaint)

    def fetch(self, *, back: bool = False, ledger: bool = True) -> RemoteResult:
        """Fetch the ledger, claims and heartbeats, all or none. NO_LEDGER if the remote has no ledger.

        BEHIND if the remote's ledger lacks commits of the mirror, which may only go back with `back`: another fetch of this
        clone was quicker, or the ledger was rewound there. LOCKED if lock files of this clone exist: see `locked_refs`.
        `ledger`: False leaves the ledger out.
        """
        sessions = BRANCH_SESSIONS if self.branches else SESSIONS
        specs = [f"{'+' if back else ''}{LEDGER}:{LEDGER}"] if ledger else []
        specs += [f"+{sessions}*:{SESSIONS}*"]
        specs += [] if self.branches else [f"+{CLAIMS}*:{CLAIMS}*"]
        with self.deadline.request(changes=False):
            result = self._answered(self._fetch([*specs, self.along] if self.along else specs))
            if result.kind == NO_LEDGER and self.along:
                self.along = ""  # perhaps it is that branch which is gone
                result = self._answered(self._fetch(specs))
            return result

    def _fetch(self, specs: list[str]) -> RemoteResult:
        if self.deadline.is_over:
            return RemoteResult(UNREACHABLE, self.deadline.message)
        code, _, complaint = fetch_own(self._env, self.deadline, self.notes, self.name, specs)
        if not code:
            return RemoteResult(LANDED)
        if code == 1 and not complaint.removeprefix("error:").strip():
            return RemoteResult(BEHIND)  # a quiet git prints nothing for it
        if code < 0 and not complaint:
            return RemoteResult(RACED, _end_of(code))
        if "couldn't find remote ref" in complaint:
            return RemoteResult(NO_LEDGER, complaint)
        if locked_refs(complaint):
            return RemoteResult(LOCKED, complaint)
        if "cannot lock ref" in complaint or "unable to lock" in complaint:
            return RemoteResult(RACED, complaint)  # another fetch is at work here
        own = "\n".join(line for line in complaint.split("\n") if not line.startswith("remote:"))
        if any(words in own for words in _OWN_TROUBLE):
            return RemoteResult(LOCAL_ERROR, _last_words(own))
        return RemoteResult(UNREACHABLE, _last_words(complaint))

    def look(self, refs: Iterable[RefName]) -> dict[RefName, Oid] | None:
        """Where these refs are there; None if it does not answer. The server sends these alone, and no objects."""
        with self.deadline.request(changes=False):
            answer = look_at_own_refs(self._env, self.deadline, self.name, *refs)
            if answer.code:
                return None
            self.deadline.answered()
            return {ref: oid for oid, _, ref in (line.partition("\t") for line in answer.lines) if ref}

    def ledger(self) -> Oid | None:
        """The remote's present ledger."""
        with self.deadline.request(changes=False):
            return look_at_own_refs(self._env, self.deadline, self.name, LEDGER).text.partition("\t")[0] or None


def is_extra(ref: RefName) -> bool:
    """Does this ref move with a landing, and is no mirror? Trunk, which is the only branch besides the ledger (`refs/heads/` here is the user's), and the commit
    of a lane."""
    return ref.startswith(LANES) or (ref.startswith("refs/heads/") and ref != LEDGER)


def locked_refs(complaint: str) -> list[str]:
    """The refs of this clone whose lock files git complains about."""
    files = [
        part.partition("'")[0] for part in complaint.split("Unable to create '")[1:] if ".lock': File exists" in part
    ]
    return [name for file in files if (name := _below_git_dir(file.removesuffix(".lock")))]


def _below_git_dir(path: str) -> str:
    """The ref of a file in any git directory; '' for another file."""
    if path.endswith("/packed-refs"):
        return "packed-refs"
    _, slash, rest = path.rpartition("/refs/")
    return f"refs/{rest}" if slash else ""


def parse_push(code: int, out: str, complaint: str) -> RemoteResult:
    """The result of a push, from git's exit code, its porcelain output and its messages."""
    rows = [line.split("\t") for line in out.split("\n") if line[1:2] == "\t"]
    reasons = [row[2] for row in rows if row[0] == "!" and len(row) > 2]
    if not code and rows and not reasons:
        return RemoteResult(LANDED)
    if not reasons:
        if "does not support --atomic" in complaint or "does not support push options" in complaint:
            return RemoteResult(REJECTED, complaint)
        gone = any(words in complaint for words in _NO_CONTACT)
        return RemoteResult(UNREACHABLE if gone else UNKNOWN, _last_words(complaint) or _end_of(code))
    return classify(reasons, _host_words(complaint))


def classify(reasons: list[str], words: str) -> RemoteResult:
    """Classify a push by the reasons for its refused refs; `words` are those of the server."""
    own = [reason for reason in reasons if not any(follows in reason for follows in _FOLLOWS)]
    if any("unpacker error" in reason for reason in own):
        return RemoteResult(FAILED, words or own[0])
    if any(moved in reason for reason in own for moved in _MOVED):
        return RemoteResult(RACED, own[0])
    if not own:  # atomic, and the server does not say which ref was the reason
        return RemoteResult(RACED, words or reasons[0])
    return RemoteResult(REJECTED, words or own[0])


def _host_words(complaint: str) -> str:
    """The server's lines, without git's own."""
    lines = [line[len("remote:") :].strip() for line in complaint.split("\n") if line.startswith("remote:")]
    return "\n".join(line for line in lines if line)[:_WORDS]


def _end_of(code: int) -> str:
    """Words for a git that printed none: a broken pipe ends it so."""
    return f"git was ended by signal {-code}" if code < 0 else f"git ended with {code} and said nothing"


def _last_words(complaint: str) -> str:
    lines = [line.strip() for line in complaint.split("\n") if line.strip()]
    told = [line for line in lines if not any(words in line for words in _IN_GENERAL)]
    return "; ".join((told or lines)[:3])[:_WORDS]
