"""Running the validators of tool calls, of texts and of the end of a session.

Only results whose `stops` is true stop anything. A validator that could not judge is a result too, not an error. `validation_changes.py` runs
the validators of changes and deploys.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.errors import CouldNotJudge, GitcoordError, TimedOut, refused
from gitcoord.base.names import printable
from gitcoord.git.files import read_file
from gitcoord.git.keyed_files import update
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.reader import Source
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.validators import READ, SHIPPED, STOP, UNKNOWN, WARN, WRITE, Result, Validator
from gitcoord.validators.tool_event import ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.validators.tally import Tally

Question = Callable[[Validator], "Iterable[Result]"]


COUNTED = ("spiral", "budget")


def chain(source: Source) -> list[Validator]:
    """The validators that the policy turns on, the shipped ones first."""
    found = source.policy(()).validators
    return sorted(found, key=lambda validator: validator.name not in SHIPPED)


def run_validators(validators: Iterable[Validator], ask: Question) -> list[Result]:
    """The results of all. A validator that fails could not judge; the others still run."""
    results: list[Result] = []
    for validator in validators:
        try:
            results += ask(validator)
        except TimedOut:
            raise  # the time of the guard or gate itself is up
        except (GitcoordError, OSError) as error:
            message = error.message if isinstance(error, GitcoordError) else str(error.strerror)
            results.append(validator.result(UNKNOWN, printable(message)))
    return results


def _some(result: Result | None) -> list[Result]:
    return [] if result is None else [result]


# --- tool calls ---------------------------------------------------------------------------------------------------


def before_tool(ctx: Context, source: Source, actor: Actor, event: ToolEvent) -> list[Result]:
    """Judge a tool call before it runs. `event.writes` and `event.reads` include the files of a shell command."""
    validators = chain(source)
    if not validators:
        return []
    plain = [validator for validator in validators if validator.name not in COUNTED]
    results = run_validators(plain, lambda validator: _on_tool(ctx, source, validator, actor, event))
    counted = [validator for validator in validators if validator.name in COUNTED]
    if counted:
        results += _counted(ctx, counted, actor, event, stopped=any(result.stops for result in results))
    return results


def _on_tool(ctx: Context, source: Source, validator: Validator, actor: Actor, event: ToolEvent) -> list[Result]:
    if validator.name == "injection":
        return _read(ctx, source, validator, event)
    return [] if validator.name in SHIPPED else _own_on_tool(ctx, validator, actor, event)


def after_tool(ctx: Context, source: Source, actor: Actor, event: ToolEvent) -> None:
    """Count failures and tokens after a tool call, when nothing can be stopped any more."""
    if any(validator.name in COUNTED for validator in chain(source)):
        from gitcoord.validators.tally import ended

        _tallied(ctx, actor, event, lambda tally: ended(tally, event))


def _read(ctx: Context, source: Source, validator: Validator, event: ToolEvent) -> list[Result]:
    """Judge the files that a tool call would read; of a large file its beginning."""
    from gitcoord.validators.injection import LONGEST, judge

    results = []
    for path in dict.fromkeys(event.reads):
        place = path if path.startswith("/") else f"{event.cwd or ctx.repo.worktree}/{path}"
        data = read_file(place, LONGEST)
        found = judge(validator, data.decode("utf-8", "replace"), path) if data else None
        if found is not None and not _is_excepted(ctx, source, validator, place):
            results.append(found)
    return results


def _is_excepted(ctx: Context, source: Source, validator: Validator, place: str) -> bool:
    """Return whether the validator's section names this file of the work tree as an exception."""
    from gitcoord.policy.patterns import matching

    top, patterns = f"{ctx.repo.worktree}/", validator.every("except")
    if not patterns or not ctx.repo.worktree or not place.startswith(top):
        return False
    return bool(matching(ctx, source, [patterns], [place[len(top) :]])[0])


def _own_on_tool(ctx: Context, validator: Validator, actor: Actor, event: ToolEvent) -> list[Result]:
    from gitcoord.gates.validation_commands import ask_command
    from gitcoord.validators.own import event_record

    kinds = [kind for kind, files in ((WRITE, event.writes), (READ, event.reads)) if files]
    return [
        ask_command(ctx, validator, kind, actor, {"event": event_record(event)})
        for kind in kinds
        if kind in validator.moments
    ]


# --- counts of tool calls: local notes, harmless to lose ------------------------------------------------------------


def _counted(
    ctx: Context, validators: list[Validator], actor: Actor, event: ToolEvent, *, stopped: bool
) -> list[Result]:
    """Judge and count in one step, so that two concurrent calls both count. A call that is stopped does not count."""
    from gitcoord.validators.budget import judge as judge_budget
    from gitcoord.validators.spiral import judge as judge_spiral
    from gitcoord.validators.tally import began, is_counted

    results: list[Result] = []

    def change(tally: Tally) -> Tally:
        if is_counted(tally, event):  # the same call was asked about before, and allowed
            return tally

        def ask(validator: Validator) -> Iterable[Result]:
            if validator.name == "spiral":
                return _some(judge_spiral(validator, tally, event))
            return judge_budget(validator, tally, event, ctx.host.wall())

        results.extend(run_validators(validators, ask))
        return tally if stopped or any(result.stops for result in results) else began(tally, event)

    _tallied(ctx, actor, event, change)
    return results


def _tallied(ctx: Context, actor: Actor, event: ToolEvent, change: Callable[[Tally], Tally]) -> None:
    """Update the tally of this agent and conversation, under a lock: a tool may make several calls at once."""
    from gitcoord.validators.tally import parse, to_record

    session = event.conversation or actor.instance or str(actor.session)

    def changed(data: bytes) -> bytes:
        try:
            record = loads(data) if data else None
        except Malformed:
            record = None
        before = parse(record, session, ctx.host.wall())
        after = change(before)
        return data if after is before else dumps(to_record(after)).encode()

    try:
        update(f"{ctx.repo.scratch}/validators", f"{actor.agent}\0{session}", changed)
    except OSError:
        changed(b"")  # without notes, each call counts as the first


# --- texts and stop -------------------------------------------------------------------------------------------------


def check_texts(ctx: Context, actor: Actor, moment: str, texts: Record) -> list[str]:
    """Judge texts, by label, before they are published to others. Returns and raises as `require` does."""
    from gitcoord.validators.injection import judge

    source = project_source(ctx)
    results: list[Result] = []
    for validator in chain(source):
        if validator.name == "injection":
            for label, text in texts.items():
                found = run_validators([validator], lambda one, text=text: _some(judge(one, text)))  # type: ignore[misc]
                where = f"{printable(label)}: " if label else ""
                results += [result._replace(message=where + result.message) for result in found]
    return require(ctx, actor, moment, results)


def publish(ctx: Context, actor: Actor, moment: str, texts: Record, act: Callable[[], Record]) -> Record:
    """Call `act`, unless a validator refuses one of the texts; gives its result, with the warnings of validators."""
    warnings = check_texts(ctx, actor, moment, texts) if texts else []
    result = act()
    return {**result, "warnings": warnings} if warnings else result


def at_stop(ctx: Context, source: Source, actor: Actor) -> list[Result]:
    """Judge the end of an agent's work."""
    validators = chain(source)

    def ask(validator: Validator) -> Iterable[Result]:
        if validator.name == "handoff":
            from gitcoord.validators.handoff import judge

            return judge(validator, *_unfinished(ctx, actor.agent))
        if validator.name in SHIPPED or STOP not in validator.moments:
            return ()
        from gitcoord.gates.validation_commands import ask_command

        return [ask_command(ctx, validator, STOP, actor, {})]

    return run_validators(validators, ask)


def before_stop(ctx: Context, actor: Actor) -> list[str]:
    """The warnings of validators before an agent ends its session; Refused where one refuses."""
    source = project_source(ctx)
    return require(ctx, actor, "stop", at_stop(ctx, source, actor)) if source.policy(()).validators else []


def _unfinished(ctx: Context, agent: str) -> tuple[list[str], list[str], list[str]]:
    """The agent's paths, paths with uncommitted work and tasks that are in no handoff."""
    from gitcoord.handoff.model import unfinished
    from gitcoord.ledger.snapshot import read_snapshot

    snapshot = read_snapshot(ctx)
    claims, dirty, tasks = unfinished(snapshot.state, ctx.world(snapshot), agent)
    return [claim.path for claim in claims], dirty, [task.id for task in tasks]


# --- results --------------------------------------------------------------------------------------------------------


def project_source(ctx: Context) -> Source:
    """The policy of trunk."""
    from gitcoord.ledger.snapshot import read_snapshot
    from gitcoord.policy.cache import trunk_source

    return trunk_source(ctx, read_snapshot(ctx))


def require(ctx: Context, actor: Actor, moment: str, results: list[Result]) -> list[str]:
    """The warnings of these results, which are recorded. Raises Refused or CouldNotJudge where one stops."""
    stops = [result for result in results if result.stops]
    if not stops:
        _record(ctx, actor, moment, results)
        return [as_line(result) for result in results if result.outcome == WARN]
    words = "; ".join(as_line(result) for result in stops)
    hints = tuple(dict.fromkeys(hint for result in stops for hint in result.hints))
    why = tuple(dict.fromkeys(f"why: {result.validator}: {result.why}" for result in stops if result.why))
    if all(result.outcome == UNKNOWN for result in stops):
        raise CouldNotJudge(words, hints=(*hints, *why))
    raise refused(stops[0].validator, words, *hints, *why)


def as_line(result: Result) -> str:
    """A result as one line of text."""
    where = f"{printable(result.path)}: " if result.path else ""
    unknown = "could not be judged: " if result.outcome == UNKNOWN else ""
    return f"{where}{unknown}{result.message} [{result.validator}]"


def _record(ctx: Context, actor: Actor, moment: str, results: list[Result]) -> None:
    from gitcoord.gates.validation_commands import as_verdicts

    noted = as_verdicts(results, actor.agent)
    if noted:
        from gitcoord.gates.approvals import leave_records

        leave_records(ctx, actor, moment, [], noted)
