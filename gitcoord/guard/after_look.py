"""Looks, after a tool call that ran a program, whether files changed that others hold or have not committed.

No parser can tell what a program writes. So `watch` notes, before the call, how those files look and keeps their content as blobs;
`compare` looks again afterwards. A changed file is told to the agent at once and to its holder at the next event, its content before and
after is kept under a ref, and the holder must read it again before it writes.
"""

from __future__ import annotations

from gitcoord.base.codec import VERSION, Record
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import ROOT, covers, fold, printable
from gitcoord.claims.facts import Covering
from gitcoord.gates.judge import Verdict, is_family, path_word
from gitcoord.git.files import is_directory, is_link, read_if_file, stamp
from gitcoord.git.keyed_files import stamp_and_hash
from gitcoord.git.loose_writer import hasher
from gitcoord.guard.hold_files import change_holds, own_files, present, read_holds, statuses
from gitcoord.guard.holds import MAX_CALLS, drop, holds_of, take
from gitcoord.guard.judge import GuardSession
from gitcoord.guard.kept import Kept, keep, put_back
from gitcoord.guard.seen import FileState
from gitcoord.guard.seen_files import end, is_being_written
from gitcoord.guard.shared_tree import others_holds
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import folds_case
from gitcoord.ledger.sessions import Actor
from gitcoord.policy.model import RESTORE, WARN
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import ToolEvent

MAX_FILES = 50  # whose content is kept for one call
MAX_BYTES = 1 << 20  # of one file
_MAX_TOTAL = 8 << 20  # that are read before one call
_MAX_KEPT = 400
_MAX_DIRTY = 500
_MAX_TOLD = 20
_OVERLAP = 3600  # seconds for which a command that has not ended is taken to run
_SHOWN = 10


def _key(agent: str, event: ToolEvent) -> str:
    digest: str = hasher(40)(f"{agent}\0{event.command}".encode("utf-8", "surrogateescape")).hexdigest()
    return digest[:16]


# --- before the call -------------------------------------------------------------------------------------------------------


def watch(session: GuardSession, event: ToolEvent, claims: list[tuple[str, str]]) -> None:
    """Note how the files look that others hold or have not committed, and keep their content.

    `claims`: path and holder of the others' write claims.
    """
    ctx, agent = session.ctx, session.actor.agent
    record = read_holds(ctx)
    holders = {hold.path: hold.agent for hold in others_holds(session)}
    case = folds_case(session.snapshot.state)
    specs: list[str] = []
    dirty: list[str] = []
    key = ""
    if claims:
        specs = Covering(session.snapshot, [path for path, _ in claims]).pathspecs
        key = _claims_key(ctx, claims)
        known = key and record["looked"]["key"] == key
        dirty = record["looked"]["dirty"] if known else list(statuses(ctx, specs=specs))
        own = {hold.path for hold in holds_of(record) if is_family(hold.agent, agent)}
        for name in dirty:
            if name not in own:
                holders.setdefault(name, _holder(claims, name, case=case))
    if not holders and not claims and not record["holds"]:
        return
    files: dict[str, list[str]] = {}
    budget = _MAX_TOTAL
    for number, path in enumerate(sorted(holders)):
        mark, blob, size = _kept_look(ctx, record, path, budget if number < MAX_FILES else 0)
        budget -= size
        files[path] = [holders[path], mark, blob]
    ctx.local.flush()
    few = len(dirty) <= _MAX_DIRTY
    call = {
        "v": VERSION, "agent": agent, "at": ctx.host.wall(), "files": files, "claims": [list(c) for c in claims] if few else [],
        "specs": specs if few else [], "dirty": dirty if few else [], "case": int(case), "restore": int(session.guard.after == RESTORE),
        "key": key if few else "",
    }  # fmt: skip

    def change(now: Record) -> None:
        now["calls"][_key(agent, event)] = call
        now["looked"] = {"key": call["key"], "dirty": call["dirty"]}
        kept = {path: [mark, blob] for path, (_, mark, blob) in files.items() if blob}
        now["kept"] = {**now["kept"], **kept} if len(now["kept"]) < _MAX_KEPT else kept
        if len(now["calls"]) > MAX_CALLS:
            del now["calls"][min(now["calls"], key=lambda key: now["calls"][key]["at"])]

    change_holds(ctx, change)


def _claims_key(ctx: Context, claims: list[tuple[str, str]]) -> str:
    """Stands for HEAD and the looks of the claimed files, so that git is not asked again; '' where one is a directory."""
    paths = [path for path, _ in claims]
    if any(path == ROOT or is_directory(f"{ctx.repo.worktree}/{path}") for path in paths):
        return ""
    text = "\0".join(
        [ctx.store.target("HEAD") or "", *(f"{p}\0{stamp(f'{ctx.repo.worktree}/{p}')}" for p in sorted(paths))]
    )
    key: str = hasher(40)(text.encode("utf-8", "surrogateescape")).hexdigest()
    return key


def _holder(claims: list[tuple[str, str]], name: str, *, case: bool) -> str:
    key = fold(name, case=case)
    return next((agent for path, agent in claims if covers(fold(path, case=case), key)), "")


def _kept_look(ctx: Context, record: Record, path: str, budget: int) -> tuple[str, str, int]:
    """The stamp of a file; the blob with its content, '' where it is no file or too large; the bytes read of `budget`."""
    file = f"{ctx.repo.worktree}/{path}"
    mark = stamp(file)
    known = record["kept"].get(path)
    if known is not None and known[0] == mark:
        return mark, known[1], 0
    most = min(MAX_BYTES, budget)
    data = None if is_link(file) or most <= 0 else read_if_file(file, most + 1)
    if data is None or len(data) > most:
        return mark, "", 0
    return mark, ctx.local.write("blob", data), len(data)


# --- after the call --------------------------------------------------------------------------------------------------------


class ChangedFile(NamedTuple):
    path: str
    holder: str
    rule: str  # 'uncommitted' or 'held'
    before: str  # the blob; '' where it was not kept
    after: str
    clean: bool = False  # it equalled HEAD before


def compare(ctx: Context, actor: Actor, event: ToolEvent) -> str:
    """The message about files of others that changed while the agent's command ran; '' for none."""
    record = read_holds(ctx)
    _refresh_own(ctx, actor, record)
    call = record["calls"].get(_key(actor.agent, event))
    if call is None:
        return ""

    def change(now: Record) -> None:
        now["calls"].pop(_key(actor.agent, event), None)

    change_holds(ctx, change)
    found = [*_changed(ctx, actor, record, call), *_newly_dirty(ctx, actor, record, call)]
    if not found:
        return ""
    kept = keep(ctx, actor.agent, {c.path: c.before for c in found}, {c.path: c.after for c in found})
    busy = _busy(ctx, record, actor)
    # Only of agents whose tools are hooked here it is known that the change was not their own.
    seen = {*present(ctx), *(hold.agent for hold in holds_of(record))} - busy if call["restore"] else set()
    back: set[str] = set()
    for one in found:
        path = f"{ctx.repo.worktree}/{one.path}"
        end(ctx, actor.agent, path, failed=False)  # so its holder must read it again
        if one.holder in seen and put_back(ctx, one.path, one.before, one.after, clean=one.clean):
            back.add(one.path)
    _tell_holders(ctx, actor, event, found, kept, back)
    _record(ctx, actor, found, kept)
    return _words(found, kept, back, busy, own_files(ctx, actor.agent))


def _changed(ctx: Context, actor: Actor, record: Record, call: Record) -> list[ChangedFile]:
    found = []
    for path, (holder, mark, blob) in call["files"].items():
        file = f"{ctx.repo.worktree}/{path}"
        now = stamp(file)
        if now == mark or _wrote_itself(ctx, actor, record, path, now):
            continue
        data = None if is_link(file) else read_if_file(file, MAX_BYTES + 1)
        after = ctx.local.write("blob", data) if data is not None and len(data) <= MAX_BYTES else ""
        if after and after == blob:
            continue  # only its time changed
        rule = "uncommitted" if path in record["holds"] else "held"
        found.append(ChangedFile(path, holder, rule, blob, after))
    return found


def _newly_dirty(ctx: Context, actor: Actor, record: Record, call: Record) -> list[ChangedFile]:
    """Files below claims of others that equalled HEAD before the call and do not any more."""
    if not call["claims"]:
        return []
    claims = [(path, agent) for path, agent in call["claims"]]
    if call["key"] and call["key"] == _claims_key(ctx, claims):
        return []
    found = []
    for name in statuses(ctx, specs=call["specs"]):
        if name in call["dirty"] or name in call["files"]:
            continue
        file = f"{ctx.repo.worktree}/{name}"
        if _wrote_itself(ctx, actor, record, name, stamp(file)):
            continue
        data = None if is_link(file) else read_if_file(file, MAX_BYTES + 1)
        after = ctx.local.write("blob", data) if data is not None and len(data) <= MAX_BYTES else ""
        holder = _holder(claims, name, case=bool(call["case"]))
        found.append(ChangedFile(name, holder, "held", "", after, clean=True))
    return found[:MAX_FILES]


def _wrote_itself(ctx: Context, actor: Actor, record: Record, path: str, mark: str) -> bool:
    """Whether another agent's own tool made this change, or is making one."""
    row = record["holds"].get(path)
    if row is not None and row["mark"] == mark and not is_family(row["agent"], actor.agent):
        return True
    return is_being_written(ctx, f"{ctx.repo.worktree}/{path}", actor.agent)


def _busy(ctx: Context, record: Record, actor: Actor) -> set[str]:
    """Other agents whose commands run now: a change may be theirs."""
    calls = [call for call in record["calls"].values() if abs(ctx.host.wall() - call["at"]) < _OVERLAP]
    return {call["agent"] for call in calls if not is_family(call["agent"], actor.agent)}


def _refresh_own(ctx: Context, actor: Actor, record: Record) -> None:
    """Holds of this agent whose files its own command changed, committed or put back."""
    own = [hold for hold in holds_of(record) if hold.agent == actor.agent]
    if not own:
        return
    head = ctx.store.target("HEAD") or ""
    moved = [h for h in own if head != record["head"] or stamp(f"{ctx.repo.worktree}/{h.path}") != h.look.mark]
    if not moved:
        return
    letters = statuses(ctx, [hold.path for hold in moved])
    looks = {h.path: FileState(*stamp_and_hash(f"{ctx.repo.worktree}/{h.path}")) for h in moved if h.path in letters}

    def change(now: Record) -> None:
        drop(now, [hold for hold in moved if hold.path not in letters])
        for path, look in looks.items():
            take(now, actor.agent, path, look, ctx.host.wall())
        now["head"] = head

    change_holds(ctx, change)


# --- telling ---------------------------------------------------------------------------------------------------------------


def _tell_holders(
    ctx: Context, actor: Actor, event: ToolEvent, found: list[ChangedFile], kept: Kept, back: set[str]
) -> None:
    command = printable(event.command.partition("\n")[0][:80])
    lines: dict[str, list[str]] = {}
    for one in found:
        if one.clean and one.path not in back:
            continue  # nothing of its holder's was lost
        text = f"{printable(one.path)} changed while a command of {actor.agent} ran: {command}"
        if one.path in back:
            text += "; its content was put back"
        elif one.before and kept.before:
            text += f"; read it again. Your content: git restore --source={kept.before} -- {path_word(one.path)}"
        else:
            text += "; read it again. Its content before was not kept"
        lines.setdefault(one.holder, []).append(text)

    def change(now: Record) -> None:
        for holder, texts in lines.items():
            now["told"][holder] = [*now["told"].get(holder, []), *texts][-_MAX_TOLD:]

    change_holds(ctx, change)


def take_told(ctx: Context, agent: str) -> str:
    """The messages for this agent that are due; each is given once."""
    if not read_holds(ctx)["told"].get(agent):
        return ""
    lines: list[str] = []
    change_holds(ctx, lambda now: lines.extend(now["told"].pop(agent, [])))
    return "\n".join(f"gitcoord: {line}" for line in lines)


def _record(ctx: Context, actor: Actor, found: list[ChangedFile], kept: Kept) -> None:
    from gitcoord.gates.approvals import leave_records

    try:
        rows = [Verdict(one.rule, WARN, one.path, actor.agent, "", kept.commit) for one in found]
        leave_records(ctx, actor, "guard", [], rows)
    except (GitcoordError, OSError):
        pass


def _words(found: list[ChangedFile], kept: Kept, back: set[str], busy: set[str], own: str) -> str:
    """`own`: the files that the agent itself wrote and has not committed."""
    lines = ["gitcoord: while this command ran, files changed that are not yours to change"]
    for one in found[:_SHOWN]:
        whose = (
            f"{one.holder} wrote it and has not committed it" if one.rule == "uncommitted" else f"{one.holder} holds it"
        )
        after = "; its content was put back" if one.path in back else ""
        after += f"; a command of {one.holder} ran at the same time" if one.holder in busy else ""
        if not one.before and not one.clean:
            after += "; its content before was not kept"
        lines.append(f"  {printable(one.path)}: {whose}{after} [{one.rule}]")
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more")
    if kept.before:
        lines.append(f"kept: {kept.before} and {kept.after}")
    left = [one for one in found if one.path not in back]
    if any(one.before for one in left):
        lines.append("each holder is told at its next action, with the command that brings its content back")
    if left:
        lines.append(f'hint: write none of them, and commit your own files alone: git coord commit -m "..." -- {own}')
    return "\n".join(lines)
