"""`git-claim --gate <hook> ...`: the command that git's hooks run. It refuses what it cannot judge.

pre-commit, pre-merge-commit   judges what is staged                  policy of HEAD
reference-transaction          judges gated refs of this repository   policy of the old value
pre-push                       judges refs of the remote              policy of the target's old tip
prepare-commit-msg             adds `Agent:` to an agent's commit     never fails
post-commit                    sends a heartbeat                      never fails
"""

from __future__ import annotations

from _signal import SIGALRM, alarm, signal

from gitcoord.base.errors import GitcoordError, NotInitialised, TimedOut, TrunkMoved
from gitcoord.base.names import CONFIG, LEDGER, printable
from gitcoord.gates.cli_verdicts import ANYBODYS, WHAT, refuse_nameless, report
from gitcoord.git.files import close, exists, fstat, open_to_change, pread, pwrite, read, write_all
from gitcoord.git.host import isatty
from gitcoord.world.open import RepositoryOpener, environ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.errors import Refusal
    from gitcoord.gates.cli_refused import Ending
    from gitcoord.gates.client_gate import Gate
    from gitcoord.gates.gate import Verdicts
    from gitcoord.git.process import Environ
    from gitcoord.git.store import RefUpdate
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.sessions.identity import HookActor
    from gitcoord.terminal.screen import Screen

_SECONDS = 120
_FEW = 5
_PLACE = "hooks/place"  # as gates/hooks/install.py writes it, which is not loaded every day
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
_HELP = "see whether the ledger is in order: git coord fsck; or ask the person who set gitcoord up here"


def main(words: list[str]) -> int:
    """The exit code of the hook that the first word names."""
    hook, *rest = words or [""]
    env = environ()
    if hook in ("prepare-commit-msg", "post-commit"):
        return _advisory_hook(hook, rest, env)
    if hook not in WHAT:
        write_all(2, b"error: git-claim --gate: unknown hook\n")
        return 2
    opener = RepositoryOpener(env, "gate")
    from gitcoord.terminal.screen import Screen

    screen = Screen(env)
    signal(SIGALRM, _too_long)
    moves: list[RefUpdate] = []
    endings: list[Ending] = []
    opened: Context | None = None
    try:
        opened = ctx = opener.context()
        wish = ctx.settings.get("gitcoord.gateseconds")
        alarm(int(wish) if wish.isdecimal() and len(wish) < 6 else _SECONDS)
        screen.use_settings(ctx.settings)
        ctx.listen(screen.note)
        screen.fit = lambda hints: _ending(endings, ctx, hook, moves).fit(hints)
        code = _judge(ctx, screen, hook, rest, env, moves)
    except NotInitialised:
        return 0
    except TrunkMoved as error:
        screen.note(f"error: {WHAT[hook]} is refused: {printable(error.message)}")
        screen.hint(*error.hints)
        return 1
    except GitcoordError as error:
        code = _could_not_judge(screen, hook, error.message, error.hints)
    except (OSError, ValueError, AssertionError, LookupError, TypeError, RecursionError) as error:
        code = _could_not_judge(screen, hook, f"{type(error).__name__}: {error}", ("this is a bug: please report it",))
    alarm(0)
    if code and opened is not None:
        if moves and hook == "reference-transaction":
            from gitcoord.gates.cli_refused import clean_up_after

            clean_up_after(opened, screen, env, moves)
        screen.fit = lambda hints: hints
        screen.hint(*_ending(endings, opened, hook, moves).hints())
    return code


def _ending(made: list[Ending], ctx: Context, hook: str, moves: list[RefUpdate]) -> Ending:
    """The end of this refusal, made when it is first needed: nothing of it is loaded for what passes."""
    if not made:
        from gitcoord.gates.cli_refused import Ending

        made.append(Ending(ctx, hook, moves))
    return made[0]


def _too_long(number: int, frame: object) -> None:
    raise TimedOut("it took too long", hints=("give it more time: git config gitcoord.gateSeconds 300",))


def _could_not_judge(screen: Screen, hook: str, message: str, hints: tuple[str, ...]) -> int:
    screen.note(f"error: {WHAT[hook]} could not be judged: {printable(message)}")
    screen.hint(*(hints or (_HELP,)))
    return 1


def _note_place(ctx: Context) -> None:
    """Note a clone that was moved or copied for whoever uninstalls gitcoord; nothing is loaded where it is still in its place."""
    from gitcoord.git.files import read_file

    place = read_file(f"{ctx.repo.scratch}/{_PLACE}").decode("utf-8", "surrogateescape")
    if place != ctx.repo.common_dir:
        from gitcoord.gates.hooks.cli import registry
        from gitcoord.gates.hooks.install import register

        register(ctx, registry())


def _judge(ctx: Context, screen: Screen, hook: str, words: list[str], env: Environ, asked: list[RefUpdate]) -> int:
    """The exit code. `asked` gets the ref updates, also where judging them fails."""
    from gitcoord.gates.client_gate import Gate
    from gitcoord.gates.commit_note import leave_note, leave_quiet_note
    from gitcoord.sessions.identity import person_by_setting, resolve_in_hook

    moves = _moves(ctx, hook)
    if moves == []:
        if _has_leftovers(ctx):
            from gitcoord.gates.refused_merge import drop_ended

            drop_ended(ctx)  # `git reset --hard` names the branch although it does not move
        return 0
    asked += moves or []
    _note_place(ctx)
    if hook != "reference-transaction":
        _say_unguarded(ctx, screen, env)
    if hook == "pre-push" and ctx.remote:
        from gitcoord.ledger.remote.fetch import fetch

        fetch(ctx)  # claims made elsewhere since the last fetch count too
    who = resolve_in_hook(ctx, env, terminal=isatty(2), by_setting=hook != "pre-push")
    index, heads = env.get(b"GIT_INDEX_FILE", b""), _heads(ctx, env if hook == "pre-merge-commit" else {})
    for is_first in (True, False):
        gate = Gate(ctx, lambda: who.actor if who.problem else _with_heartbeat(ctx, who.actor), names=who.names)
        if moves is None:
            outcome = _judge_index(ctx, gate, index, heads)
        elif hook == "pre-push":
            outcome = gate.push(words[0] if words else "", moves)
        else:
            outcome = gate.moves(moves)
        # What is refused by an old copy of the ledger may have been released, or claimed, since.
        if not (is_first and outcome.refused and ctx.remote and hook != "pre-push" and _has_news(ctx)):
            break
    if moves is None:
        process = env.get(b"GITCOORD_GIT_PROCESS", b"").decode("ascii", "replace")
        if gate.clean is not None and process:
            leave_note(ctx, process, gate.actor, gate.clean)
        outcome = _with_others_work(ctx, gate, who, outcome)
    elif gate.pulled and len(moves) == 1:
        leave_quiet_note(ctx, gate.pulled)
    if moves is None and not outcome.refused:
        left = _leftovers(ctx, index, heads) or _markers(ctx, index)
        if left is not None:
            screen.note(f"error: {WHAT[hook]} is refused", f"  {left.message}")
            screen.hint(*left.hints)
            return 1
        _warn_of_policy(ctx, screen, gate, index)
    if outcome.refused and ctx.remote and hook != "pre-push":
        _say_age(ctx, screen)
    if who.problem is not None and any(verdict.rule not in ANYBODYS for verdict in outcome.refused):
        person = person_by_setting(ctx, env) if hook == "pre-push" else None
        return refuse_nameless(screen, hook, outcome, who.problem, person.agent if person else "")
    return report(ctx, screen, hook, gate.actor, outcome) if outcome.verdicts else 0


def _has_news(ctx: Context) -> bool:
    """Return whether the remote has events that this clone has not seen; it has them now."""
    from gitcoord.ledger.remote.fetch import try_fetch

    before = ctx.store.target(LEDGER)
    if try_fetch(ctx) is not None:
        return False  # the refusal says how old its knowledge is
    ctx.store.refresh()
    return ctx.store.target(LEDGER) != before


def _judge_index(ctx: Context, gate: Gate, index: bytes, heads: list[str]) -> Verdicts:
    """The verdicts on what is staged. Where work that has landed meanwhile is not here yet, trunk is fetched once."""
    from gitcoord.gates.git_history import LackingCommit

    try:
        return gate.index(index, heads)
    except LackingCommit as lacking:
        if not ctx.remote:
            raise
        from gitcoord.ledger.remote.user_refs import fetch_sync

        try:
            fetch_sync(ctx, ctx.remote, gate.sync)
        except GitcoordError:
            raise lacking from None
        ctx.store.refresh()
        return gate.index(index, heads)


def _has_leftovers(ctx: Context) -> bool:
    from gitcoord.gates.commit_note import NOTED_MERGES

    return exists(f"{ctx.repo.scratch}/{NOTED_MERGES}")


def _leftovers(ctx: Context, index: bytes, heads: list[str]) -> Refusal | None:
    """The refusal of what a refused move left; nothing is loaded where none is noted."""
    if not _has_leftovers(ctx):
        return None
    from gitcoord.gates.refused_merge import find_leftovers

    return find_leftovers(ctx, index, heads)


def _markers(ctx: Context, index: bytes) -> Refusal | None:
    """The refusal of conflict markers that a merge or the like left; nothing is loaded where none is under way."""
    if not any(exists(f"{ctx.repo.git_dir}/{sign}") for sign in _UNDER_WAY):
        return None
    from gitcoord.gates.conflict_markers import find_markers

    return find_markers(ctx, index.decode("utf-8", "surrogateescape"))


def _warn_of_policy(ctx: Context, screen: Screen, gate: Gate, index: bytes) -> None:
    """Warn of likely mistakes where the commit changes the policy; nothing is loaded for any other commit."""
    if not any(path == CONFIG or path.rpartition("/")[2] == ".gitattributes" for path in gate.staged):
        return
    from gitcoord.gates.explain import check_policy
    from gitcoord.policy.reader import staged_policy

    try:
        file = index.decode("utf-8", "surrogateescape") or f"{ctx.repo.git_dir}/index"
        problems = check_policy(ctx, staged_policy(ctx, index=file))
    except (GitcoordError, OSError):
        return  # it is judged by the policy before it
    screen.note(*(f"warning: {printable(row['where'])}: {printable(row['what'])}" for row in problems[:_FEW]))
    if len(problems) > _FEW:
        screen.note(f"warning: and {len(problems) - _FEW} more")
    if problems:
        screen.hint("see them again: git coord policy check --commit HEAD")


def _with_others_work(ctx: Context, gate: Gate, who: HookActor, outcome: Verdicts) -> Verdicts:
    """The verdicts, and those on files that another agent's tool wrote here; nothing is loaded where none did."""
    if who.problem is not None or who.actor.person or not exists(f"{ctx.repo.scratch}/guard/holds"):
        return outcome
    from gitcoord.guard.shared_tree import staged_work

    found = staged_work(ctx, gate.actor, gate.staged, outcome.policy.stage("uncommitted"))
    return outcome._replace(verdicts=[*outcome.verdicts, *found])


def _say_age(ctx: Context, screen: Screen) -> None:
    """A commit is judged by what this clone last fetched: a refusal says how old that is, since a holder may have released meanwhile."""
    from gitcoord.base.durations import format_duration
    from gitcoord.ledger.remote.fetch import mirror_age

    age = mirror_age(ctx)
    if age:
        screen.note(f"note: judged by what '{ctx.remote}' had {format_duration(age)} ago; look again: git claim list")


def _say_unguarded(ctx: Context, screen: Screen, env: Environ) -> None:
    """Warn where an agent tool's guard does not run. Outside of agent tools nothing is loaded or read."""
    from gitcoord.sessions.identity import conversation_actor, in_tool

    if in_tool(env) or conversation_actor(env) is not None:
        from gitcoord.sessions.unguarded import unguarded_lines

        screen.note(*unguarded_lines(ctx, env))


def _with_heartbeat(ctx: Context, actor: Actor) -> Actor:
    """The actor, after its heartbeat: running a gate counts as activity."""
    from gitcoord.sessions.service import beat_quietly

    beat_quietly(ctx, actor)
    return actor


def _heads(ctx: Context, env: Environ) -> list[str]:
    """HEAD and the heads that are being merged. `git merge` names them in the environment before it writes MERGE_HEAD."""
    from gitcoord.git.files import read_file

    merging = read_file(f"{ctx.repo.git_dir}/MERGE_HEAD").decode("ascii", "replace").split()
    merging = merging or [name[8:].decode() for name in env if name.startswith(b"GITHEAD_")]
    head = ctx.store.target("HEAD")
    return [head, *merging] if head else []


def _moves(ctx: Context, hook: str) -> list[RefUpdate] | None:
    """The ref updates that git lists on stdin; None for hooks that judge the index."""
    if hook in ("pre-commit", "pre-merge-commit"):
        return None
    from gitcoord.git.store import RefUpdate

    data = b""
    while part := read(0, 65536):
        data += part
    moves = []
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        fields = line.rsplit(" ", 3) if hook == "pre-push" else line.split(" ")
        if hook == "pre-push" and len(fields) == 4:
            moves.append(RefUpdate(fields[2], _oid(fields[3]), _oid(fields[1])))
        elif hook == "reference-transaction" and len(fields) == 3:
            move = RefUpdate(fields[2], _oid(fields[0]), _oid(fields[1]))
            # `git reset --hard` to the same commit: git has locked the ref and compared it, so nothing changes.
            if not (move.new and move.old == move.new) and not _is_packing(ctx, move):
                moves.append(move if move.old else move._replace(old=ctx.store.target(move.ref) or ""))
        elif line:
            raise ValueError(f"cannot read what git says: {line}")
    return moves


def _oid(text: str) -> str:
    if not text:
        raise ValueError("cannot read what git says: an object id is missing")
    return "" if not text.strip("0") else text


def _is_packing(ctx: Context, move: RefUpdate) -> bool:
    """Return whether git only moves this ref between a loose file and packed-refs. Writers may update it meanwhile."""
    if move.new and not move.old and ctx.store.resolve([move.ref])[0] == move.new:
        return True
    from gitcoord.git.packing import is_packing

    return is_packing(ctx.repo.common_dir, move.ref, move.old, move.new, ctx.host.pause)


# --- hooks that never fail ------------------------------------------------------------------------------------------


def _advisory_hook(hook: str, words: list[str], env: Environ) -> int:
    try:
        ctx = RepositoryOpener(env, "gate").context()
        from gitcoord.sessions.identity import resolve_in_hook

        actor, problem, _ = resolve_in_hook(ctx, env, terminal=isatty(2), by_setting=True)
        if problem is None and hook == "post-commit":
            _with_heartbeat(ctx, actor)
        elif problem is None and not actor.person and words:
            _sign(ctx, actor.agent, words[0])
    except (GitcoordError, OSError):
        pass
    return 0


def _sign(ctx: Context, agent: str, message: str) -> None:
    """Add the `Agent:` trailer unless there is one."""
    from gitcoord.git.commands.worktrees import add_trailer

    _end_line(message)
    add_trailer(ctx.repo.env, f"Agent: {agent}", file=message)


def _end_line(message: str) -> None:
    """End the last line: `git merge` leaves it open, and git 2.39 then puts the trailer into the subject's paragraph."""
    fd = open_to_change(message, makes=False)
    try:
        size = fstat(fd).st_size
        if size and pread(fd, 1, size - 1) != b"\n":
            pwrite(fd, b"\n", size)
    finally:
        close(fd)
