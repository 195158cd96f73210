"""The use cases of `git claim`: take, release, renew, disown, takeover."""

from gitcoord.app.ledger import read_snapshot, settle
from gitcoord.app.transact import transact
from gitcoord.core.claims import Item, all_claims
from gitcoord.core.kinds import kind_module
from gitcoord.errors import Refusal, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.codec import Record
    from gitcoord.core.events import Decision
    from gitcoord.core.kinds.claim import Take
    from gitcoord.core.sessions import Actor
    from gitcoord.core.state import State, View


def take(ctx: "Context", command: "Take") -> "dict[str, object]":
    """Grant all that is asked for, or raise Refused with every holder. Harmless to repeat."""
    head = ctx.store.resolve(["HEAD"])[0] or ""
    return transact(ctx, kind_module("claim").decide, command._replace(base=head))


def would_take(ctx: "Context", command: "Take") -> "dict[str, object]":
    """The answer that `take` would give now; nothing is changed."""
    snapshot = read_snapshot(ctx)
    decide = kind_module("claim").decide
    answer = settle(ctx, snapshot, ctx.view(), lambda state, view: decide(state, command, view))
    if isinstance(answer, Refusal):
        raise Refused(answer)
    result: dict[str, object] = answer.result
    return result


def release(
    ctx: "Context", actor: "Actor", items: tuple[Item, ...], *, commit: str = "", dirty: bool = False
) -> "dict[str, object]":
    """Give back what is named (nothing named: everything), with the commit that carries the work."""
    kind = kind_module("release")
    return transact(ctx, kind.decide, kind.Release(actor, items, commit, dirty))


def renew(ctx: "Context", actor: "Actor", items: tuple[Item, ...], ttl: int) -> "dict[str, object]":
    """A heartbeat now; with a ttl, the claims named (nothing named: all) get it."""
    kind = kind_module("claim")

    def decide(state: "State", command: "Take", view: "View") -> "Decision | Refusal":
        mine = {Item(c["space"], c["path"]): c for c in all_claims(state, actor.agent)}
        missing = [item.name for item in items if item not in mine]
        if missing or not mine:
            what = ", ".join(missing) or "anything"
            return Refusal("not-held", f"'{actor.agent}' does not hold {what}", hints=("git claim list --mine",))
        chosen = items or tuple(mine)
        same = {(mine[i]["mode"], mine[i]["units"], mine[i]["ttl"] if not ttl else 0) for i in chosen}
        if len(same) > 1 and ttl:
            return Refusal("mixed", "these claims differ in mode: renew them one by one with --ttl")
        first: Record = mine[chosen[0]]
        if not ttl:
            # One heartbeat keeps every claim of the session alive.
            return kind.decide(state, command._replace(items=chosen[:1], mode=first["mode"], units=first["units"]), view)  # type: ignore[no-any-return]
        return kind.decide(state, command._replace(items=chosen, mode=first["mode"], units=first["units"]), view)  # type: ignore[no-any-return]

    head = ctx.store.resolve(["HEAD"])[0] or ""
    return transact(ctx, decide, kind.Take(actor, (), ttl=ttl, base=head))


def disown(ctx: "Context", actor: "Actor", path: str, reason: str) -> "dict[str, object]":
    """Clear the lineage of a path, on record."""
    kind = kind_module("disown")
    return transact(ctx, kind.decide, kind.Disown(actor, path, reason))


def takeover(ctx: "Context", actor: "Actor", item: Item, token: int, reason: str) -> "dict[str, object]":
    """A person takes a live claim away, naming its token."""
    kind = kind_module("takeover")
    head = ctx.store.resolve(["HEAD"])[0] or ""
    return transact(ctx, kind.decide, kind.Takeover(actor, item, token, reason, head))


