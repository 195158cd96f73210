"""`git coord init`: the ledger, here or at a remote."""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.base.names import printable
from gitcoord.ledger.remote.address import by_ssh
from gitcoord.ledger.remote.membership import begin, find, find_own
from gitcoord.ledger.sessions import Actor
from gitcoord.terminal.parser import Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.terminal.call import Call
    from gitcoord.terminal.screen import Row

_STAYS_CONNECTED = (
    "each command spares itself the handshake if ssh stays connected: set ControlMaster auto, ControlPath ~/.ssh/%C and "
    "ControlPersist 60 for this host in ~/.ssh/config"
)


def init(call: Call, values: Values, words: list[str]) -> int:
    adopt = bool(values.get("adopt"))
    wish = str(values.get("remote", ""))
    membership = find_own(call.ctx) if adopt and not wish else find(call.ctx, wish, look=False)
    result = begin(
        call.ctx,
        _initialiser(call),
        membership,
        sync=str(values.get("sync", "")),
        fold=_fold(values),
        adopt=adopt,
        same=bool(values.get("same")),
        read_only=bool(values.get("read-only")),
    )
    remote = str(result.get("remote", ""))
    if values.get("policy") or (adopt and call.ctx.policy_setting("root")):
        from gitcoord.ledger.named_ledger import fetched_policy
        from gitcoord.policy.starter import name_ledger, write_starter

        starts = values.get("policy") and (adopt or not fetched_policy(call.ctx))
        written = write_starter(call.ctx.repo, str(result["root"]), remote) if starts else []
        named = name_ledger(call.ctx.repo, str(result["root"]) if adopt else "", remote)
        result["policy"] = [*written, *(name for name in named if name not in written)]
    call.screen.answer(result)
    _tell(call, result, remote)
    return 0


def _fold(values: Values) -> bool | None:
    if values.get("fold-case") and values.get("no-fold-case"):
        raise UsageError("--fold-case and --no-fold-case are opposites")
    return True if values.get("fold-case") else False if values.get("no-fold-case") else None


def _tell(call: Call, result: Row, where: str) -> None:
    if result["created"]:
        call.screen.say(f"gitcoord is set up; work lands on '{printable(str(result['sync']))}'")
        call.screen.hint("claim a path: git claim <path>", "launch an agent: git coord run --as <name> -- <command>")
    elif where:
        call.screen.say(f"this clone uses the ledger of '{printable(where)}'")
    elif result.get("adopted"):
        call.screen.say("this copy is an authority of its own now")
    else:
        call.screen.say("gitcoord is already set up here")
    if where and by_ssh(call.ctx, where):
        call.screen.hint(_STAYS_CONNECTED)
    written: list[str] = result.get("policy", [])
    call.screen.say(*(f"wrote {name}" for name in written))
    if written:
        from gitcoord.policy.uncommitted import commit_command

        call.screen.hint(f"look at them, then: {commit_command(call.ctx, written, where)}")


def _initialiser(call: Call) -> Actor:
    """Setting up asks for no agent: 'init' stands for a caller without a name."""
    try:
        return call.actor()
    except UsageError:
        return Actor("init")
