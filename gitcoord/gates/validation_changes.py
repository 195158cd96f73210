"""Validators of changes and deploys: what a commit, a push or a deploy would bring, handed to those that are turned on."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, GitcoordError, TimedOut
from gitcoord.base.names import printable
from gitcoord.deploy.staleness import last_good
from gitcoord.gates.history import net_changes
from gitcoord.gates.validation_commands import as_verdicts, ask_command
from gitcoord.git.commands.objects import empty_tree, merge_base
from gitcoord.git.process import without_grafts
from gitcoord.policy.patterns import matching
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators import DEPLOY, PUSH, SHIPPED, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gitcoord.gates.judge import Change, Verdict
    from gitcoord.ledger.context import Context
    from gitcoord.ledger.sessions import Actor
    from gitcoord.ledger.snapshot import Snapshot
    from gitcoord.policy.model import Policy
    from gitcoord.policy.reader import Source
    from gitcoord.validators import Result, Validator

_SHOWN = 1000  # paths that a command is told of
_AT_ONCE = 200  # files that are read at once


class Span(NamedTuple):
    """What is judged as a whole: all that lies between two commits, or between one and the index ('')."""

    moment: str
    base: str
    head: str
    changes: tuple[Change, ...]
    staged: bytes = b""  # the index that git names, where it is not the usual one


class Asked(NamedTuple):
    """Who asks, by which policy, and whose commands are trusted: `trusted` is the policy of where work lands."""

    source: Source
    policy: Policy
    actor: Actor
    trusted: Callable[[], Policy] | None


def span_between(ctx: Context, moment: str, base: str, head: str) -> Span:
    old = base or empty_tree(ctx.repo.env)
    return Span(moment, base, head, tuple(net_changes(ctx, old, head)))


def on_push(ctx: Context, asked: Asked, landed: list[str], new: str, *, direct: bool) -> list[Verdict]:
    """All that a push, or a range of commits, brings. A branch is judged from where it left what landed, so that each of its
    pushes has the whole of it; `direct`: it goes to where work lands, from the one commit that is there ('': none yet)."""
    if direct:
        return on_changes(ctx, asked, span_between(ctx, PUSH, landed[0], new))
    bases = merge_base(without_grafts(ctx.repo.env), new, *landed).lines if landed else []
    if not bases:
        return []  # nothing has landed yet that it could be compared with
    return on_changes(ctx, asked, span_between(ctx, PUSH, bases[0], new))


def on_changes(ctx: Context, asked: Asked, span: Span) -> list[Verdict]:
    """What the validators of changes say, as verdicts."""
    wanted = [v for v in asked.policy.validators if v.name in ("changelog", "decision") and span.moment in v.moments]
    own = _own(asked, span.moment)
    if not span.changes or not (wanted or own):
        return []
    paths = [change.path for change in span.changes]
    concerned = matching(ctx, asked.source, [v.every("path") for v in (*wanted, *own)], paths)
    results: list[Result] = []
    for validator, these in zip((*wanted, *own), concerned):
        if these:
            results += _guarded(validator, lambda v, these=these: _judge(ctx, asked, span, v, these))  # type: ignore[misc]
    return as_verdicts(results, asked.actor.agent, span.head)


def _own(asked: Asked, moment: str) -> list[Validator]:
    """The project's own commands, as the policy of where work lands has them, and this machine's."""
    own = [v for v in asked.policy.validators if v.name not in SHIPPED]
    if not own or asked.trusted is None:
        return []
    return [v for v in asked.trusted().validators if v.name not in SHIPPED and moment in v.moments]


def _guarded(validator: Validator, ask: Callable[[Validator], list[Result]]) -> list[Result]:
    try:
        return ask(validator)
    except TimedOut:
        raise  # the gate's own time is up
    except (GitcoordError, OSError) as error:
        return [validator.said(UNKNOWN, printable(str(error)))]


def _judge(ctx: Context, asked: Asked, span: Span, validator: Validator, these: list[str]) -> list[Result]:
    if validator.name == "decision":
        from gitcoord.validators.decision import judge

        found = judge(validator, these, [change.path for change in span.changes if change.blob])
        return [] if found is None else [found]
    if validator.name == "changelog":
        from gitcoord.validators.changelog import file_of
        from gitcoord.validators.changelog import judge as judge_changelog

        file = file_of(validator)
        new = next((change.blob for change in span.changes if change.path == file), "")
        before = _content(ctx, f"{span.base}:{file}") if span.base and new else b""
        found = judge_changelog(validator, these, before, _content(ctx, new) if new else b"")
        return [] if found is None else [found]
    told = {"base": span.base, "commit": span.head, "paths": these[:_SHOWN], "more": max(0, len(these) - _SHOWN)}
    return [ask_command(ctx, validator, span.moment, asked.actor, told, span.staged)]


def _content(ctx: Context, name: str) -> bytes:
    (found,) = ctx.local.read([name])
    if found is None and ":" not in name:
        raise CouldNotJudge(f"{name[:12]} cannot be read", hints=("git fetch, if it is elsewhere",))
    return found.data if found is not None and found.kind == "blob" else b""


# --- deploys --------------------------------------------------------------------------------------------------------


def on_deploy(ctx: Context, asked: Asked, target: str, commit: str, last: str) -> list[Result]:
    """Before a commit goes out: the files that changed since the last deploy that went well ('': all there are)."""
    wanted = [v for v in asked.policy.validators if v.name == "placeholders"]
    own = _own(asked, DEPLOY)
    if not wanted and not own:
        return []
    changes = [change for change in span_between(ctx, DEPLOY, last, commit).changes if change.blob]
    blobs = {change.path: change.blob for change in changes if change.mode != "160000"}
    concerned = matching(ctx, asked.source, [v.every("path") for v in (*wanted, *own)], blobs)
    results: list[Result] = []
    for validator, these in zip((*wanted, *own), concerned):
        results += _guarded(
            validator,
            lambda v, these=these: _deployed(ctx, asked, v, [(path, blobs[path]) for path in these], (target, commit, last)),  # type: ignore[misc]
        )  # fmt: skip
    return results


def on_deploy_push(ctx: Context, asked: Asked, snapshot: Snapshot, targets: list[str], commit: str) -> list[Verdict]:
    """The same for a push that deploys."""
    found: list[Verdict] = []
    for target in targets:
        last = last_good(ctx, snapshot, target)
        results = on_deploy(ctx, asked, target, commit, str(last.commit) if last is not None else "")
        found += as_verdicts(results, asked.actor.agent, commit)
    return found


def _deployed(
    ctx: Context, asked: Asked, validator: Validator, files: list[tuple[str, str]], deploy: tuple[str, str, str]
) -> list[Result]:
    if validator.name == "placeholders":
        from gitcoord.validators.placeholders import judge

        return judge(validator, _read(ctx, files))
    target, commit, last = deploy
    paths = [path for path, _ in files]
    told = {"target": target, "base": last, "commit": commit, "paths": paths[:_SHOWN]}
    return [ask_command(ctx, validator, DEPLOY, asked.actor, {**told, "more": max(0, len(paths) - _SHOWN)})]


def _read(ctx: Context, files: list[tuple[str, str]]) -> Iterable[tuple[str, bytes]]:
    for start in range(0, len(files), _AT_ONCE):
        part = files[start : start + _AT_ONCE]
        for (path, blob), found in zip(part, ctx.local.read([blob for _, blob in part])):
            if found is None:
                raise CouldNotJudge(f"{printable(path)} ({blob[:12]}) cannot be read", hints=("git fetch",))
            yield path, found.data
