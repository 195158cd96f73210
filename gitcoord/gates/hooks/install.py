"""Installing git's hooks beside existing ones, and removing them without a trace.

From git 2.54 on the settings name our hooks (`hook.<name>.command`), and the hooks directory stays as it is. With an older git
our hook takes the place of the existing one, which is kept beside it and runs first.
"""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError, refused
from gitcoord.claims.facts import deploy_refs
from gitcoord.gates.hooks.files import bring_back, look, put, remove_empty, same_file
from gitcoord.gates.hooks.husky import bring, directories, lacking
from gitcoord.gates.hooks.managers import CALLED, EVENTS, TRANSACTION, Managed, find_link, find_manager
from gitcoord.gates.hooks.text import KEPT, Kit, is_edited, is_ours, render
from gitcoord.git.commands.refs import common_dir, hooks_dir, version
from gitcoord.git.commands.settings import change_settings, list_settings
from gitcoord.git.config import parse_settings
from gitcoord.git.files import (
    append_file,
    free_name,
    is_directory,
    is_executable,
    make_directory,
    read_file,
    remove_file,
    write_file,
)
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.startup.namedtuple import NamedTuple

CONFIGURED = (2, 54)  # the first git that runs hooks from its settings
GATE = "gitcoord.gateRef"
_ADDED = "hooks/gates"  # the gated refs that `install` added
PLACE = "hooks/place"  # where this clone was when it was noted in the list of repositories


class HookChange(NamedTuple):
    """The change of one hook. `action`: installed, upgraded, unchanged, removed, restored, set aside or left."""

    event: str
    action: str
    path: str
    data: bytes = b""
    kept: str = ""
    ran: bool = True  # git ran the file that was there

    def row(self) -> dict[str, object]:
        row: dict[str, object] = {"hook": self.event, "action": self.action, "file": self.path}
        return {**row, "before": self.kept} if self.kept else row


class HookPlan(NamedTuple):
    """The changes that `install` makes. `settings` are the local settings to add."""

    way: str
    directory: str
    steps: list[HookChange]
    settings: list[tuple[str, str]]
    other: list[HookChange]  # hooks of the other way (`config` or `chain`), which are removed first
    gates: list[str]
    registry: str = ""  # the list of repositories that uninstalling reads
    husky: dict[str, bytes] = {}  # files of husky's own directory that are missing in this work tree

    @property
    def changes(self) -> bool:
        return bool(self.settings or self.other or self.husky or any(step.action != "unchanged" for step in self.steps))

    def result(self) -> dict[str, object]:
        rows = [step.row() for step in self.steps]
        return {"way": self.way, "directory": self.directory, "hooks": rows, "gate_refs": self.gates}


# --- installing --------------------------------------------------------------------------------------------------


def gated_refs(ctx: Context) -> list[str]:
    """The refs that the reference-transaction hook judges: trunk and the refs of deploy targets."""
    snapshot = read_snapshot(ctx)
    return list(dict.fromkeys([f"refs/heads/{format_record(snapshot.state).sync}", *deploy_refs(ctx, snapshot)]))


def plan(ctx: Context, kit: Kit, gates: list[str]) -> HookPlan | Managed:
    """The changes that `install` would make; Managed where another program manages the hooks. Changes nothing."""
    if not ctx.repo.worktree:
        raise UsageError(
            "there is no work tree here: these hooks are for the clones in which people commit",
            hints=("run it in a work tree; a bare repository needs a gate for what is pushed to it",),
        )
    common, directory = _places(ctx)
    local = _local(ctx)
    configured = git_version(ctx) >= CONFIGURED
    managed = find_link(_own_directory(ctx, common), common) if configured else find_manager(ctx, directory, common)
    if managed is not None:
        return managed
    if not configured:
        steps = [_hook_file(kit, event, directory) for event in EVENTS]
        wanted: list[tuple[str, str]] = []
        other = _named_hooks(common, local)
    else:
        directory = f"{common}/hooks"
        steps = [_named_hook(kit, event, directory) for event in EVENTS]
        wanted = [pair for event in EVENTS for pair in _settings(event, directory)]
        other = [step for event in EVENTS if (step := _removal(event, directory)) is not None]
    _require_one_section(common)
    wanted += [(GATE, ref) for ref in gates]
    there = set(local)
    missing = [(key, value) for key, value in wanted if (key.lower(), value) not in there]
    return HookPlan("config" if configured else "chain", directory, steps, missing, other, gates, kit.registry)


def plan_beside(ctx: Context, kit: Kit, gates: list[str], managed: Managed) -> HookPlan:
    """The changes beside a manager: hooks that its lines call, and in its directory the one that it does not know."""
    common = _places(ctx)[0]
    steps = [_hook_file(kit, event, f"{common}/{CALLED}") for event in EVENTS]
    husky = lacking(ctx)
    if managed.own and (husky or is_directory(managed.own)):
        steps.append(_hook_file(kit, TRANSACTION, managed.own))
    _require_one_section(common)
    there = set(_local(ctx))
    missing = [(GATE, ref) for ref in gates if (GATE.lower(), ref) not in there]
    return HookPlan("managed", f"{common}/{CALLED}", steps, missing, [], gates, kit.registry, husky)


def install(ctx: Context, found: HookPlan) -> None:
    """Carry out the plan. Repeating it is harmless. Hooks are installed before the settings name the refs that they judge."""
    register(ctx, found.registry)
    _undo(ctx, found.other)
    bring(ctx, found.husky)
    for step in found.steps:
        if step.action != "unchanged":
            put(step.path, step.data, step.kept)
    added = [value for key, value in found.settings if key == GATE]
    if added:
        write_file(ctx.scratch(_ADDED), "".join(f"{ref}\n" for ref in [*_added(ctx), *added]).encode())
    for key, value in found.settings:
        _git_config(ctx, ["--add" if key == GATE else "--replace-all", key, value])


def register(ctx: Context, registry: str) -> None:
    """Note this repository, and where it is, for whoever uninstalls gitcoord. It is not needed to judge: a list that cannot be
    written is left, and the next hook tries again."""
    if not registry:
        return
    try:
        common = common_dir(ctx.repo.env, ctx.repo.worktree).text.encode("utf-8", "surrogateescape")
        if common not in read_file(registry, 1 << 20).split(b"\n") and b"\n" not in common:
            place = registry.rpartition("/")[0]
            make_directory(place.rpartition("/")[0])
            make_directory(place)
            append_file(registry, common + b"\n")
        write_file(ctx.scratch(PLACE), ctx.repo.common_dir.encode("utf-8", "surrogateescape"))
    except (OSError, StoreError):
        pass


def _hook_file(kit: Kit, event: str, directory: str) -> HookChange:
    """The change of one hook in the hooks directory; the hook that was there is kept."""
    path, data = f"{directory}/{event}", render(kit, event, chained=True)
    found = look(path)
    if found is None:
        return HookChange(event, "installed", path, data)
    if is_ours(found):
        return _ours_again(HookChange(event, "upgraded", path, data), found, f"{event}{KEPT} beside it (it runs first)")
    kept = path + KEPT
    if look(kept) is not None and not same_file(path, kept):
        raise refused(
            "kept-hook",
            f"{path} is not gitcoord's, and {kept} exists already: it is not clear which of them runs first",
            f"merge both into {path} and remove {kept}",
        )
    return HookChange(event, "installed", path, data, kept, ran=is_executable(path))


def _named_hook(kit: Kit, event: str, directory: str) -> HookChange:
    """The change of one hook that the settings name; git does not look for a file of this name."""
    path, data = f"{directory}/gitcoord-{event}", render(kit, event, chained=False)
    found = look(path)
    if not found:
        return HookChange(event, "installed", path, data)
    return _ours_again(HookChange(event, "upgraded", path, data), found, f"a hook of your own ({event} beside it, say)")


def _ours_again(step: HookChange, found: bytes, better: str) -> HookChange:
    """The change of a hook that exists under our name; `better` is the place for a user's own lines."""
    if found == step.data and is_executable(step.path):
        return step._replace(action="unchanged")
    if is_edited(found):
        raise refused(
            "edited-hook",
            f"{step.path} was changed since gitcoord installed it",
            f"move your lines to {better}, delete it, try again",
        )
    return step


def _settings(event: str, directory: str) -> list[tuple[str, str]]:
    command = "'" + f"{directory}/gitcoord-{event}".replace("'", "'\\''") + "'"
    return [(f"hook.gitcoord-{event}.command", command), (f"hook.gitcoord-{event}.event", event)]


def _require_one_section(common: str) -> None:
    """The hooks parse the settings in sh, and read only the first section [gitcoord]."""
    lines = read_file(f"{common}/config", 1 << 20).lower().split(b"\n")
    if sum(line.strip().startswith(b"[gitcoord]") for line in lines) > 1:
        raise UsageError(
            "the local settings have several sections [gitcoord]", hints=("make them one: git config --local --edit",)
        )


# --- removing ----------------------------------------------------------------------------------------------------


def removal(ctx: Context) -> list[HookChange]:
    """The changes that `uninstall` would make. It needs no ledger, so it works where that is damaged."""
    common, directory = _places(ctx)
    places = [f"{common}/hooks", f"{common}/{CALLED}"]
    husky = f"{ctx.repo.worktree}/.husky/_"
    if directory not in places and (directory == husky or directory.startswith(f"{common}/")):
        places += directories(ctx) if directory == husky else [directory]
    steps = [_removal(event, place) for place in places for event in EVENTS]
    return [*_named_hooks(common, _local(ctx)), *(step for step in steps if step is not None)]


def uninstall(ctx: Context, steps: list[HookChange]) -> bool:
    """Carry out the changes, and remove the gated refs that `install` added (all, if those are unknown).

    True if something changed.
    """
    _undo(ctx, steps)
    remove_empty(f"{ctx.repo.common_dir}/{CALLED}")
    gated = dict.fromkeys(value for key, value in _local(ctx) if key == GATE.lower())
    added = _added(ctx)
    ours = [ref for ref in gated if ref in added or (steps and not added)]
    for ref in ours:
        _git_config(ctx, ["--fixed-value", "--unset-all", GATE, ref])
    if added:
        remove_file(ctx.scratch(_ADDED))
    return bool(ours or steps)


def _added(ctx: Context) -> list[str]:
    return read_file(f"{ctx.repo.scratch}/{_ADDED}", 1 << 20).decode("utf-8", "surrogateescape").splitlines()


def _removal(event: str, directory: str) -> HookChange | None:
    path = f"{directory}/{event}"
    found, kept = look(path), path + KEPT
    has_kept = look(kept) is not None
    if found is None:
        return HookChange(event, "restored", path, kept=kept) if has_kept else None
    if not is_ours(found):
        return HookChange(event, "left", path, kept=kept) if has_kept else None
    action = "set aside" if is_edited(found) else "restored" if has_kept else "removed"
    return HookChange(event, action, path, kept=kept if has_kept else "")


def _named_hooks(common: str, local: list[tuple[str, str]]) -> list[HookChange]:
    steps = []
    for event in EVENTS:
        path = f"{common}/hooks/gitcoord-{event}"
        found = look(path)
        if any(key.startswith(f"hook.gitcoord-{event}.") for key, _ in local) or found is not None:
            steps.append(HookChange(event, "set aside" if found and is_edited(found) else "removed", path))
    return steps


def _undo(ctx: Context, steps: list[HookChange]) -> None:
    named = {key.rpartition(".")[0] for key, _ in _local(ctx)}
    for step in steps:
        section = f"hook.gitcoord-{step.event}"
        if step.path.endswith(f"/gitcoord-{step.event}") and section in named:
            _git_config(ctx, ["--remove-section", section])
        if step.action == "set aside":
            bring_back(step.path, free_name(f"{step.path}.edited-gitcoord"))
        if step.kept and step.action != "left":
            bring_back(step.kept, step.path)
        elif step.action == "removed":
            remove_file(step.path)


# --- git ---------------------------------------------------------------------------------------------------------


def git_version(ctx: Context) -> tuple[int, ...]:
    words = version(ctx.repo.env).text.split()
    numbers = words[2].split(".")[:2] if len(words) > 2 else []
    return tuple(int(number) for number in numbers if number.isdecimal())


def _places(ctx: Context) -> tuple[str, str]:
    """The common directory, and where git looks for hooks: absolute, links followed."""
    # Two calls, since a path may contain a newline.
    found = [ask(ctx.repo.env, ctx.repo.worktree) for ask in (common_dir, hooks_dir)]
    common, hooks = (answer.require("git cannot tell where its hooks are", StoreError).text for answer in found)
    return common, hooks


def _own_directory(ctx: Context, common: str) -> str:
    """The hooks directory of the git directory, without core.hooksPath; links followed."""
    return hooks_dir(ctx.repo.env, configured=f"{common}/hooks").text


def _local(ctx: Context) -> list[tuple[str, str]]:
    return parse_settings(list_settings(ctx.repo.env).out)


def _git_config(ctx: Context, words: list[str]) -> None:
    code, complaint = change_settings(ctx.repo, ["--local", *words], ctx.host.pause)
    if code:
        raise StoreError(f"cannot write the local settings: {complaint}", hints=("try again",))


def require_unmanaged(found: HookPlan | Managed) -> HookPlan:
    """The plan; Refused, with the lines to add there, if another program manages the hooks."""
    if isinstance(found, HookPlan):
        return found
    error = refused(
        "managed",
        f"the hooks of this repository are managed by {found.manager} ({found.why}); nothing was changed",
        "install the hooks that these lines call, and add them: git coord setup --edit-hooks"
        if found.file_of("pre-commit")
        else "add these lines, and install the hooks that they call: git coord setup",
    )
    error.data = {"manager": found.manager, "snippet": found.snippet}
    raise error
