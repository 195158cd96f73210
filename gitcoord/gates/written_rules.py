"""The project's written rules: the current version, its text, and the agents that have read it."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import RULES, quote
from gitcoord.gates import model
from gitcoord.git.commands.refs import rev_parse
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.ledger.transaction import transact
from gitcoord.policy.cache import trunk_source
from gitcoord.policy.model import ENFORCE

_HINT = ("a starter: git coord init --policy", f"then put {RULES} on the branch that work lands on")


def rules(ctx: Context, version: str = "") -> dict[str, object]:
    """The rules on trunk, or the named version of them."""
    snapshot = read_snapshot(ctx, trusting=True)
    source = trunk_source(ctx, snapshot)
    found = _version(ctx, version) if version else source.rules
    text = ""
    if found:
        (blob,) = ctx.store.read([found])
        if blob is None or blob.kind != "blob":
            raise CouldNotJudge(f"{RULES} ({found[:12]}) cannot be read", hints=("git fetch, if it is elsewhere",))
        text = blob.data.decode("utf-8", "replace")
    policy = source.policy(())
    required = policy.ack and policy.stage("rules") == ENFORCE
    return {"version": found, "text": text, "required": required}


def acknowledge(ctx: Context, actor: Actor, version: str = "") -> dict[str, object]:
    """Record that this agent has read the current version of the rules, or the named one."""
    found = _version(ctx, version) if version else trunk_source(ctx, read_snapshot(ctx)).rules
    if not found:
        raise UsageError("this project has no written rules", hints=_HINT)
    from gitcoord.gates.events.ack import Ack, decide

    return transact(ctx, decide, Ack(actor, found))


def readers(ctx: Context) -> dict[str, object]:
    """The last version that each agent has read, and whether it has read the current one."""
    snapshot = read_snapshot(ctx, trusting=True)
    current = trunk_source(ctx, snapshot).rules
    rows = []
    for reader in model.readers(snapshot.state):
        known = any(row.version == current for row in reader.read)
        rows.append({"agent": reader.agent, **reader.read[-1]._asdict(), "current": known})
    return {"version": current, "readers": rows}


def _version(ctx: Context, word: str) -> str:
    """The id of a version: from the beginning of its blob id, or from a commit that has the rules."""
    named = word if word and not word.strip("0123456789abcdef") else ""
    for name in [f"{named}^{{blob}}"] * bool(named) + [f"{word}:{RULES}"]:
        if found := rev_parse(ctx.repo.env, name).text:
            return found
    raise UsageError(
        f"{quote(word[:80])} is no version of the rules here", hints=("git fetch, if it is new", "git coord rules")
    )
