"""Running the validators of commits, pushes and deploys."""

from __future__ import annotations

from gitcoord.base.codec import Record
from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import printable
from gitcoord.deploy.staleness import last_good
from gitcoord.gates.history import net_changes
from gitcoord.gates.judge import Change, Verdict
from gitcoord.gates.validation import run_validators
from gitcoord.gates.validation_commands import as_verdicts, ask_command
from gitcoord.git.commands.objects import empty_tree, merge_base
from gitcoord.git.process import without_grafts
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.policy.model import Policy
from gitcoord.policy.patterns import matching
from gitcoord.policy.reader import Source
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators import DEPLOY, PUSH, SHIPPED, Result, Validator

_SHOWN = 1000  # paths that a command gets
_AT_ONCE = 200  # files that are read at once


class Span(NamedTuple):
    """The changes between two commits ('': none yet), or between a commit and the index (''), judged as a whole."""

    moment: str
    base: str
    head: str
    changes: tuple[Change, ...] | None = None  # of the index; None: of the two commits
    staged: bytes = b""  # the file of the index, where it is not the usual one
    target: str = ""  # of a deploy


class ValidationInput(NamedTuple):
    """The actor, the policy that applies, and trunk's policy (`trusted`), of which alone commands are run."""

    source: Source
    policy: Policy
    actor: Actor
    trusted: Callable[[], Policy] | None


def on_push(ctx: Context, given: ValidationInput, landed: list[str], new: str, *, direct: bool) -> list[Verdict]:
    """Verdicts on all changes of a push or a range of commits.

    A branch is judged from where it left trunk, so that each of its pushes is judged as a whole. `direct`: it is a push to trunk,
    whose tip is the only commit in `landed` ('': none yet).
    """
    bases = landed
    if not direct:
        bases = merge_base(without_grafts(ctx.repo.env), new, *landed).lines if landed else []
    # Without a base there is no common history with trunk.
    return on_changes(ctx, given, Span(PUSH, bases[0], new)) if bases else []


def on_changes(ctx: Context, given: ValidationInput, span: Span) -> list[Verdict]:
    """Verdicts of the validators of changes."""
    return as_verdicts(_results(ctx, given, span), given.actor.agent, span.head)


def _results(ctx: Context, given: ValidationInput, span: Span) -> list[Result]:
    deploys = span.moment == DEPLOY
    shipped = ("placeholders",) if deploys else ("changelog", "decision")
    wanted = [v for v in given.policy.validators if v.name in shipped and (deploys or span.moment in v.moments)]
    wanted += _own(given, span.moment)
    if not wanted:
        return []
    if span.changes is None:
        old = span.base or empty_tree(ctx.repo.env)
        span = span._replace(changes=tuple(net_changes(ctx, old, span.head)))
    changes = span.changes or ()
    if deploys:  # only files can be deployed
        changes = tuple(change for change in changes if change.blob and change.mode != "160000")
    concerned = matching(ctx, given.source, [v.every("path") for v in wanted], [change.path for change in changes])
    these = {validator: paths for validator, paths in zip(wanted, concerned) if paths or deploys}
    return run_validators(these, lambda validator: _judge(ctx, given, span, validator, these[validator]))


def _own(given: ValidationInput, moment: str) -> list[Validator]:
    """The project's own commands, as trunk's policy has them, and those of the private overlay."""
    own = [v for v in given.policy.validators if v.name not in SHIPPED]
    if not own or given.trusted is None:
        return []
    return [v for v in given.trusted().validators if v.name not in SHIPPED and moment in v.moments]


def _judge(ctx: Context, given: ValidationInput, span: Span, validator: Validator, these: list[str]) -> list[Result]:
    changes = span.changes or ()
    if validator.name == "placeholders":
        from gitcoord.validators.placeholders import judge as judge_placeholders

        blobs = {change.path: change.blob for change in changes}
        return judge_placeholders(validator, _read(ctx, [(path, blobs[path]) for path in these]))
    if validator.name == "decision":
        from gitcoord.validators.decision import judge

        found = judge(validator, these, [change.path for change in changes if change.blob])
        return [] if found is None else [found]
    if validator.name == "changelog":
        from gitcoord.validators.changelog import file_of
        from gitcoord.validators.changelog import judge as judge_changelog

        file = file_of(validator)
        new = next((change.blob for change in changes if change.path == file), "")
        before = _content(ctx, f"{span.base}:{file}") if span.base and new else b""
        found = judge_changelog(validator, these, before, _content(ctx, new) if new else b"")
        return [] if found is None else [found]
    question: Record = {"base": span.base, "commit": span.head, "paths": these[:_SHOWN]}
    question |= {"more": max(0, len(these) - _SHOWN)} | ({"target": span.target} if span.target else {})
    return [ask_command(ctx, validator, span.moment, given.actor, question, span.staged)]


def _content(ctx: Context, name: str) -> bytes:
    (found,) = ctx.local.read([name])
    if found is None and ":" not in name:
        raise CouldNotJudge(f"{name[:12]} cannot be read", hints=("git fetch, if it is elsewhere",))
    return found.data if found is not None and found.kind == "blob" else b""


# --- deploys --------------------------------------------------------------------------------------------------------


def on_deploy(ctx: Context, given: ValidationInput, target: str, commit: str, last: str) -> list[Result]:
    """Judge the files that changed since the last successful deploy ('': all files)."""
    return _results(ctx, given, Span(DEPLOY, last, commit, target=target))


def on_deploy_push(
    ctx: Context, given: ValidationInput, snapshot: Snapshot, targets: list[str], commit: str
) -> list[Verdict]:
    """Verdicts of the validators of deploys on a push that deploys."""
    found: list[Verdict] = []
    for target in targets:
        last = last_good(ctx, snapshot, target)
        results = on_deploy(ctx, given, target, commit, str(last.commit) if last is not None else "")
        found += as_verdicts(results, given.actor.agent, commit)
    return found


def _read(ctx: Context, files: list[tuple[str, str]]) -> Iterable[tuple[str, bytes]]:
    for start in range(0, len(files), _AT_ONCE):
        part = files[start : start + _AT_ONCE]
        for (path, blob), found in zip(part, ctx.local.read([blob for _, blob in part])):
            if found is None:
                raise CouldNotJudge(f"{printable(path)} ({blob[:12]}) cannot be read", hints=("git fetch",))
            yield path, found.data
