"""Installation of the gate in a repository that others push to: its hooks, its guarantees, its keys."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError, refused
from gitcoord.base.names import LEDGER, check_agent, printable
from gitcoord.gates.hooks import install as hooks
from gitcoord.gates.hooks.files import look, put
from gitcoord.gates.hooks.text import KEPT, Kit, is_ours, render
from gitcoord.git.files import is_directory, is_executable, read_file, remove_directory, remove_file, write_file
from gitcoord.git.process import run
from gitcoord.ledger.context import Context
from gitcoord.server.accounts import FILE, SETTING, VARIABLES, read_accounts, variable
from gitcoord.server.limits import read_limits
from gitcoord.server.signatures import SIGNERS, signing_on
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.gates.hooks.install import HookChange

EVENTS = ("pre-receive", "reference-transaction", "post-receive")
INSTALLED = "installed"  # the settings that the installer made, so that it takes away no others
# Push options name agents. Heartbeats leave many small objects behind, over which git's automatic gc gives up again and
# again: the administrator runs it on a schedule.
_SETTINGS = (("receive.advertisePushOptions", "true"), ("receive.autogc", "false"))


class GatePlan(NamedTuple):
    directory: str
    steps: list[HookChange]
    settings: list[tuple[str, str]]

    @property
    def changes(self) -> bool:
        return bool(self.settings) or any(step.action != "unchanged" for step in self.steps)


# --- hooks ---------------------------------------------------------------------------------------------------------


def plan(ctx: Context, kit: Kit, account: str) -> GatePlan:
    """The steps of an installation. Changes nothing."""
    if account and account not in VARIABLES:
        raise UsageError(
            f"'{printable(account[:80])}' is no variable in which a transport names the account",
            hints=(f"one of {', '.join(VARIABLES)}",),
        )
    directory = _directory(ctx)
    steps = [_hook_file(kit, event, directory) for event in EVENTS]
    there = dict(hooks._local(ctx))
    wanted = [*_SETTINGS, *([(SETTING, account)] if account else [])]
    missing = [
        (key, value)
        for key, value in wanted
        if there.get(key.lower()) != value and (key == SETTING or key.lower() not in there)
    ]
    return GatePlan(directory, steps, missing)


def _directory(ctx: Context) -> str:
    common, directory = hooks._places(ctx)
    if directory != f"{common}/hooks":
        raise refused(
            "managed",
            f"the hooks of this repository lie elsewhere ({printable(directory)}): nothing was changed",
            "see docs/server.md for the place where that program looks for hooks of your own",
        )
    return directory


def _place(event: str, directory: str) -> str:
    """Our hook's file in `<event>.d`, if the host program runs all files there (Gitea, Forgejo); else ''."""
    return f"{directory}/{event}.d/gitcoord" if is_directory(f"{directory}/{event}.d") else ""


def _hook_file(kit: Kit, event: str, directory: str) -> HookChange:
    beside = _place(event, directory)
    if not beside:
        return hooks._hook_file(kit, event, directory)
    step = hooks.HookChange(event, "installed", beside, render(kit, event, chained=False))
    found = look(beside)
    if found is None:
        return step
    return hooks._ours_again(step._replace(action="upgraded"), found, "a file of your own beside it")


def install(ctx: Context, found: GatePlan) -> None:
    """Carry out the plan. Repeating it is harmless."""
    for step in found.steps:
        if step.action != "unchanged":
            put(step.path, step.data, step.kept)
    note = ctx.scratch(INSTALLED)
    lines = read_file(note).decode().splitlines()
    for key, value in found.settings:
        hooks._git_config(ctx, ["--replace-all", key, value])
        lines.append(f"{key} {value}")
    write_file(note, "".join(f"{line}\n" for line in dict.fromkeys(lines)).encode())


def removal(ctx: Context) -> list[HookChange]:
    directory = _directory(ctx)
    steps = [hooks._removal(event, directory) for event in EVENTS]
    beside = [
        hooks.HookChange(event, "removed", path) for event in EVENTS if look(path := _place(event, directory) or "/-/")
    ]
    return [*(step for step in steps if step is not None), *beside]


def uninstall(ctx: Context, steps: list[HookChange]) -> bool:
    """Carry out the plan, and remove the settings that `install` made and nobody changed. Accounts and keys stay."""
    for step in steps:
        if step.path.endswith("/gitcoord"):
            remove_file(step.path)
    hooks._undo(ctx, [step for step in steps if not step.path.endswith("/gitcoord")])
    note = f"{ctx.repo.scratch}/{INSTALLED}"
    there = dict(hooks._local(ctx))
    lines = read_file(note).decode().splitlines()
    for key, _, value in (line.partition(" ") for line in lines):
        if there.get(key.lower()) == value:
            hooks._git_config(ctx, ["--unset-all", key])
    for name in (INSTALLED, "settings"):
        remove_file(f"{ctx.repo.scratch}/{name}")
    remove_directory(ctx.repo.scratch)
    return bool(steps or lines)


# --- status --------------------------------------------------------------------------------------------------------


def missing_hooks(ctx: Context) -> list[dict[str, object]]:
    """The hooks of the gate that do not run in this repository."""
    return [row for row in _hook_rows(ctx) if row["state"] != "installed"]


def _hook_rows(ctx: Context) -> list[dict[str, object]]:
    directory = _directory(ctx)
    rows: list[dict[str, object]] = []
    for event in EVENTS:
        path = _place(event, directory) or f"{directory}/{event}"
        found = look(path)
        state = "missing" if found is None else "installed" if is_ours(found) and is_executable(path) else "not ours"
        rows.append({"hook": event, "state": state, "file": path, "before": look(path + KEPT) is not None})
    return rows


def status(ctx: Context, git_claim: str) -> dict[str, object]:
    """The installed hooks and settings, and the guarantees that they leave open."""
    rows = _hook_rows(ctx)
    accounts = read_accounts(ctx)
    registry = ctx.settings.flag("gitcoord.server.inflight", default=True)
    signing = signing_on(ctx)
    holes = [f"the {row['hook']} hook is {row['state']}" for row in rows if row["state"] != "installed"]
    holes += [] if git_claim else ["git-claim is not to be found: every push is refused"]
    if accounts is None:
        holes.append(f"open: there is no {ctx.repo.scratch}/{FILE}, so a push may give any agent's name")
    holes += [] if signing else ["events are not signed: every push of an account can act for its agents"]
    holes += [] if registry else ["gitcoord.server.inflight is off: a push may land after its claim was taken over"]
    limits = read_limits(ctx, beginning=False)
    return {
        "ledger": ctx.store.target(LEDGER) or "", "hooks": rows, "git_claim": git_claim,
        "account_variable": variable(ctx) if accounts is not None else "", "accounts": sorted(accounts or ()),
        "open": accounts is None, "signing": "ssh" if signing else "off", "keys": len(keys(ctx)), "inflight": registry,
        "limits": {"events": limits.events, "event_bytes": limits.size, "commits": limits.commits, "wait": limits.wait},
        "holes": holes,
    }  # fmt: skip


# --- keys ----------------------------------------------------------------------------------------------------------


class Key(NamedTuple):
    agent: str
    key: str  # type and key, as in a public key file
    line: str


def keys(ctx: Context) -> list[Key]:
    found = []
    for line in _signers(ctx).splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            kinds = [index for index, word in enumerate(words) if word.startswith(("ssh-", "ecdsa-", "sk-"))]
            place = kinds[0] if kinds else len(words)
            found.append(Key(words[0], " ".join(words[place : place + 2]), line))
    return found


def _signers(ctx: Context) -> str:
    return read_file(f"{ctx.repo.scratch}/{SIGNERS}", 1 << 24).decode("utf-8", "surrogateescape")


def add_key(ctx: Context, agent: str, file: str) -> Key:
    """Let this key sign for the agent, beside the listed ones. Repeating it is harmless."""
    key = _public_key(ctx, check_agent(agent), file)
    if not any((other.agent, other.key) == (key.agent, key.key) for other in keys(ctx)):
        text = _signers(ctx)
        _write(ctx, text + ("" if text.endswith("\n") or not text else "\n") + key.line + "\n")
    return key


def rotate_key(ctx: Context, agent: str, file: str) -> Key:
    """Let this key, and no other, sign for the agent."""
    key = _public_key(ctx, check_agent(agent), file)
    kept = [line for line in _signers(ctx).splitlines() if line.split()[:1] != [agent]]
    _write(ctx, "".join(f"{line}\n" for line in [*kept, key.line]))
    return key


def revoke_key(ctx: Context, agent: str, file: str = "") -> int:
    """Remove this key, or all keys, of the agent; gives how many were removed."""
    wanted = _public_key(ctx, check_agent(agent), file).key if file else ""
    gone = {key.line for key in keys(ctx) if key.agent == agent and wanted in ("", key.key)}
    _write(ctx, "".join(f"{line}\n" for line in _signers(ctx).splitlines() if line not in gone))
    return len(gone)


def _public_key(ctx: Context, agent: str, file: str) -> Key:
    text = read_file(file).decode("utf-8", "replace").strip()
    code, _, complaint = run(["ssh-keygen", "-l", "-f", file], ctx.repo.env)
    words = text.split()
    if code or "\n" in text or len(words) < 2 or "PRIVATE" in text:
        raise UsageError(
            f"{printable(file)} is not one public ssh key{': ' + complaint if complaint else ''}",
            hints=("give the .pub file",),
        )
    return Key(agent, " ".join(words[:2]), f'{agent} namespaces="git" {" ".join(words[:2])}')


def _write(ctx: Context, text: str) -> None:
    try:
        write_file(ctx.scratch(SIGNERS), text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise StoreError(f"cannot write the server's keys: {error.strerror}") from None
