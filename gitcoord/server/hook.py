"""`git-claim --receive`: the command that the server's pre-receive hook runs. It fails closed.

git tells on stdin which refs are to move. Pushed objects lie in a quarantine that only git's own variables lead to: they
are handed on to the children that read. What judging makes itself (trial merges) goes to a directory of its own and is
removed, so that nothing of it becomes part of the repository.
"""

from __future__ import annotations

from _signal import SIGALRM, alarm, signal

from gitcoord.base.codec import UPGRADE_SERVER, NewerVersion
from gitcoord.base.errors import GitcoordError, Refused, TimedOut
from gitcoord.base.names import CLAIMS, LEDGER, PRIVATE, printable
from gitcoord.git.config import SettingsReader
from gitcoord.git.files import getcwd, random_hex, read, write_all
from gitcoord.git.host import getpid
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.git.process import Environ, clean_environ
from gitcoord.git.repo import Repo, common_of
from gitcoord.git.store import RefUpdate
from gitcoord.ledger.context import Context
from gitcoord.world.open import _loose, environ, preload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.gate import Verdicts
    from gitcoord.gates.judge import Verdict
    from gitcoord.server.accounts import Pusher
    from gitcoord.server.inflight import Inflight

_SECONDS = 120
_SHOWN = 20
_UNSURE = "could not be judged, so it is refused"


def main(words: list[str]) -> int:
    env = environ()
    signal(SIGALRM, _too_long)
    alarm(_SECONDS)
    push = _Push(env)
    try:
        return push.judge()
    except (Refused, TimedOut) as error:
        return push.refuse("is refused", error.message, error.hints)
    except NewerVersion as error:  # it says to upgrade on this side, which is the server
        return push.refuse(_UNSURE, error.message, (UPGRADE_SERVER,))
    except GitcoordError as error:
        return push.refuse(_UNSURE, error.message, error.hints)
    except OSError as error:  # a full disk, say
        where = f"{error.filename}: " if error.filename else ""
        return push.refuse(_UNSURE, f"{where}{error.strerror or error}", ())
    except (ValueError, AssertionError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return push.refuse(_UNSURE, f"{type(error).__name__}: {error}", ("this is a bug: please report it",))
    finally:
        push.tidy()


class _Push:
    """One push under judgement, and the temporary files to remove after it."""

    def __init__(self, env: Environ) -> None:
        self._env = env
        self._registry: Inflight | None = None
        self._place = ""

    def judge(self) -> int:
        data = _stdin()
        repo = _repo(self._env)
        config = SettingsReader(repo, self._env)
        self._place = _workplace(repo, data)
        if self._place:
            repo = _with_object_directory(repo, self._place)
        store = PlumbingStore(repo)
        preload("receive")
        ctx = _context(repo, config, store)
        wish = ctx.settings.get("gitcoord.server.seconds")
        alarm(int(wish) if wish.isdecimal() and len(wish) < 6 else _SECONDS)
        from gitcoord.server.inflight import Inflight

        self._registry = Inflight(repo.common_dir, repo.scratch, ctx.host.boot, ctx.host.mono)
        self._registry.enabled = ctx.settings.flag("gitcoord.server.inflight", default=True)
        code = _judge(ctx, self._registry, self._env, data)
        if code:
            self._registry.withdraw()
        return code

    def refuse(self, what: str, message: str, hints: tuple[str, ...]) -> int:
        alarm(0)
        if self._registry is not None:
            self._registry.withdraw()
        _write(f"gitcoord: this push {what}: {printable(message)}")
        for hint in hints:
            _write(f"hint: {printable(hint)}")
        return 1

    def tidy(self) -> None:
        if self._place:
            from gitcoord.gates.hooks.files import remove_tree

            remove_tree(self._place)


def _too_long(number: int, frame: object) -> None:
    raise TimedOut(
        "it took too long to judge",
        hints=("push less at once", "the server's administrator may raise gitcoord.server.seconds"),
    )


def _stdin() -> bytes:
    data = b""
    while part := read(0, 65536):
        data += part
    return data


# --- opening -------------------------------------------------------------------------------------------------------


def _repo(env: Environ) -> Repo:
    """The repository that receive-pack names in the hook's environment."""
    text = env.get(b"GIT_DIR", b".").decode("utf-8", "surrogateescape")
    git_dir = text if text.startswith("/") else f"{getcwd()}/{text}".removesuffix("/.")
    clean = clean_environ(env)
    for name in (b"GIT_OBJECT_DIRECTORY", b"GIT_ALTERNATE_OBJECT_DIRECTORIES", b"GIT_QUARANTINE_PATH"):
        if name in env:
            clean[name] = env[name]
    clean[b"GIT_DIR"] = git_dir.encode("utf-8", "surrogateescape")
    return Repo(git_dir, common_of(git_dir), "", "", clean)


def _workplace(repo: Repo, data: bytes) -> str:
    """A directory for the objects of trial merges; '' if the push has no code."""
    refs = [line.rpartition(b" ")[2].decode("utf-8", "surrogateescape") for line in data.split(b"\n") if line]
    if all(ref == LEDGER or ref.startswith((CLAIMS, PRIVATE)) for ref in refs):
        return ""
    from gitcoord.git.files import make_directory

    place = f"{repo.scratch}/judging/{getpid()}-{random_hex(4)}"
    make_directory(place)
    return place


def _with_object_directory(repo: Repo, place: str) -> Repo:
    """The environment in which new objects go to `place`; the quarantine and the repository are read."""
    quarantine = repo.env.get(b"GIT_OBJECT_DIRECTORY", b"")
    others = repo.env.get(b"GIT_ALTERNATE_OBJECT_DIRECTORIES", b"")
    own = _quoted(repo.objects.encode("utf-8", "surrogateescape"))
    env = {**repo.env, b"GIT_OBJECT_DIRECTORY": place.encode("utf-8", "surrogateescape")}
    env[b"GIT_ALTERNATE_OBJECT_DIRECTORIES"] = b":".join(
        part for part in (_quoted(quarantine) if quarantine else b"", others, own) if part
    )
    env.pop(b"GIT_QUARANTINE_PATH", None)
    return repo._replace(env=env)


def _quoted(path: bytes) -> bytes:
    """The directory in C quotes where it contains a colon or a quote, as git reads a list of directories."""
    if b":" not in path and not path.startswith(b'"'):
        return path
    return b'"' + path.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _context(repo: Repo, config: SettingsReader, store: PlumbingStore) -> Context:
    from gitcoord.git.host import Host
    from gitcoord.ledger.context import Context
    from gitcoord.world.client import ClientWorld

    settings = config.read()

    def never() -> object:
        raise AssertionError("a gate writes no objects")

    store.configure(settings.oid_length, False, _loose(repo, settings), never)  # type: ignore[arg-type]
    return Context(repo, settings, store, Host(), ClientWorld)


# --- judging -------------------------------------------------------------------------------------------------------


def _judge(ctx: Context, registry: Inflight, env: Environ, data: bytes) -> int:
    from gitcoord.server.receive import receive

    def pusher() -> Pusher:
        from gitcoord.server.accounts import find_pusher

        texts = {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in env.items()}
        return find_pusher(ctx, texts, _option(env))

    return _report(ctx, receive(ctx, registry, pusher, _moves(data)))


def _moves(data: bytes) -> list[RefUpdate]:
    from gitcoord.git.store import RefUpdate

    moves = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        if line:
            old, new, ref = line.split(" ", 2)
            moves.append(RefUpdate(ref, "" if not old.strip("0") else old, "" if not new.strip("0") else new))
    return moves


def _option(env: Environ) -> str:
    """The agent that the push names: `git push -o agent=<name>`."""
    count = env.get(b"GIT_PUSH_OPTION_COUNT", b"0")
    named = ""
    for number in range(int(count) if count.isdigit() and len(count) < 6 else 0):
        option = env.get(b"GIT_PUSH_OPTION_%d" % number, b"").decode("utf-8", "replace")
        if option.startswith("agent="):
            named = option.removeprefix("agent=")
    return named


def _report(ctx: Context, found: list[tuple[Verdicts, list[Verdict]]]) -> int:
    """Print warnings and refusals of code for the pusher; append notices of stage `monitor` to a file."""
    verdicts = [verdict for outcome, stale in found for verdict in (*stale, *outcome.verdicts)]
    refused = [verdict for verdict in verdicts if verdict.stage == "enforce"]
    noted = [verdict for verdict in verdicts if verdict.stage != "enforce"]
    for verdict in noted:
        if verdict.stage == "warn":
            _write(f"gitcoord: warning: {_verdict(verdict)}")
    if noted:
        _log(ctx, noted)
    if not refused:
        return 0
    _write("gitcoord: this push is refused")
    for verdict in refused[:_SHOWN]:
        _write("  " + _verdict(verdict))
    if len(refused) > _SHOWN:
        _write(f"  and {len(refused) - _SHOWN} more")
    policy = next(outcome.policy for outcome, stale in found if outcome.verdicts or stale)
    for line in policy.reasons(verdict.rule for verdict in refused):
        _write(line)
    for hint in list(dict.fromkeys(hint for verdict in refused for hint in verdict.hints))[:6]:
        _write(f"hint: {printable(hint)}")
    return 1


def _verdict(verdict: Verdict) -> str:
    where = f"{printable(verdict.path)}: " if verdict.path else ""
    commit = f" ({verdict.commit[:12]})" if verdict.commit else ""
    return f"{where}{printable(verdict.message)}{commit} [{verdict.rule}]"


def _log(ctx: Context, noted: list[Verdict]) -> None:
    from gitcoord.git.files import append_file

    lines = [f"{ctx.host.wall()} {verdict.stage} {verdict.agent} {_verdict(verdict)}\n" for verdict in noted]
    try:
        append_file(ctx.scratch("receive.log"), "".join(lines).encode("utf-8", "backslashreplace"))
    except (OSError, GitcoordError):
        pass


def _write(line: str) -> None:
    write_all(2, line.encode("utf-8", "backslashreplace") + b"\n")
