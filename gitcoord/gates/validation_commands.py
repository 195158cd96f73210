"""Running the project's own validators, which are commands, and turning results into verdicts."""

from __future__ import annotations

from gitcoord.base.codec import Record, dumps
from gitcoord.gates.judge import Verdict
from gitcoord.git.long_process import run_shell
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import ENFORCE
from gitcoord.policy.model import WARN as WARN_STAGE
from gitcoord.startup.annotations import Iterable
from gitcoord.validators import PASS, UNKNOWN, WARN, Result, Validator
from gitcoord.validators.own import judge, question


def ask_command(ctx: Context, validator: Validator, on: str, actor: Actor, more: Record, index: bytes = b"") -> Result:
    """Run the validator's command in the top directory. It comes from trunk's policy, never from the change that is judged."""
    env = {**ctx.repo.env, b"GITCOORD_AGENT": actor.agent.encode()}
    if index:
        env[b"GIT_INDEX_FILE"] = index
    place = ctx.repo.worktree or ctx.repo.common_dir
    data = dumps(question(validator, on, actor.agent, {"repository": place, **more})).encode() + b"\n"
    return judge(validator, *run_shell(validator.get("command"), place, env, data, validator.seconds))


def as_verdicts(results: Iterable[Result], agent: str, commit: str = "") -> list[Verdict]:
    """The verdicts of the results that have a message."""
    found = []
    for result in results:
        if result.outcome == PASS and not result.message:
            continue
        stage = {PASS: result.stage, WARN: WARN_STAGE}.get(result.outcome, ENFORCE)
        if result.outcome == PASS and stage == ENFORCE:
            continue  # it passes with a message, at a stage that records nothing
        unknown = "could not be judged: " if result.outcome == UNKNOWN else ""
        found.append(
            Verdict(result.validator, stage, result.path, agent, unknown + result.message, commit, hints=result.hints)
        )
    return found
