"""The overview in lines, for `status` and `top`: what needs you first. Red: needs you. Yellow: soon. Green: fine."""

from __future__ import annotations

from gitcoord.base.durations import format_duration
from gitcoord.base.names import IN_LANE, printable
from gitcoord.claims.cli_views import waiting_lines
from gitcoord.startup.annotations import Iterator
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.terminal.fit import wrapped
from gitcoord.terminal.screen import Row, ago, aligned, claim_table, counted
from gitcoord.views.urgency import LIVES, agents_first, claims_first, tasks_first

PATH, AGENT, TASK = "path", "agent", "task"
_INDENT = "  "
_ABOUT = {
    "halt": AGENT, "killed": AGENT, "task": TASK, "guard": AGENT, "deadlock": AGENT, "wait": PATH, "expired": PATH, "approval": PATH,
    "expiring": AGENT, "slow": PATH, "old-copy": PATH, "conflict": PATH, "deploy": PATH, "stalled": TASK,
}  # fmt: skip


class Line(NamedTuple):
    """A line: texts with their colours; and what it is about, if a story can be told of it."""

    cells: tuple[tuple[str, str], ...]
    kind: str = ""
    subject: str = ""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.cells).rstrip()


def plain(text: str, colour: str = "") -> Line:
    return Line(((text, colour),))


def render(model: Row, width: int = 0, most: int = 0) -> list[Line]:
    """The lines of the overview. `width`: columns to fit into. `most`: rows of each list; what has waiters or has expired goes first."""
    return [
        *_needs(model, width), *_early(model, width), *_claims(model, width, most), *_landing(model, width, most), *_agents(model, width, most),
        *_tasks(model, width, most), *_approvals(model, width, most), *_deploys(model, width, most),
        *_contention(model, width),
        plain(f"ledger: {counted(model['seq'], 'event')}", "dim"),
    ]  # fmt: skip


def _needs(model: Row, width: int) -> Iterator[Line]:
    mine, others = model["needs_you"], model["needs_person"]
    yield plain(f"needs you: {len(mine)}", "red") if mine else plain("nothing needs you", "green")
    yield from _need_lines(mine, "red", width)
    if others:
        yield plain(f"needs a person: {len(others)}", "yellow")
        yield from _need_lines(others, "yellow", width)


def _early(model: Row, width: int) -> Iterator[Line]:
    rows = model["early_warnings"]
    if rows:
        yield plain(f"early warnings: {len(rows)}", "yellow")
        yield from _need_lines(rows, "yellow", width)


def _need_lines(rows: list[Row], colour: str, width: int) -> Iterator[Line]:
    for row in rows:
        since = f", {ago(row['since'])}" if row["since"] else ""
        words = f"{printable(row['message'])} [{printable(row['source'])}{since}]"
        kind = _ABOUT.get(row["kind"], "")
        for at, line in enumerate(wrapped(words, max(20, width - 4) if width else 0)):
            cells = ((f"{_INDENT}{'!' if at == 0 else ' '} ", colour), (line, colour))
            yield Line(cells, *((kind, row["subject"]) if kind and at == 0 else ()))
        if row["help"]:
            yield plain(f"{_INDENT}    {printable(row['help'])}", "cyan")


def _section(title: str, rows: list[Row], lines: list[Line], most: int, more: str) -> Iterator[Line]:
    """A heading with the number of rows, and their lines; where there are more than `most`, how to see them."""
    yield plain(f"{title}: {len(rows) or 'none'}", "bold")
    yield from lines
    if most and len(rows) > most:
        yield plain(f"{_INDENT}{len(rows) - most} more: {more}", "dim")


def _table(rows: list[list[tuple[str, str]]], about: list[tuple[str, str]], width: int) -> list[Line]:
    """Aligned columns, without those that are empty."""
    full = [at for at in range(len(rows[0])) if any(row[at][0] for row in rows)] if rows else []
    rows = [[row[at] for at in full] for row in rows]
    texts = aligned([[text for text, _ in row] for row in rows], max(20, width - len(_INDENT)) if width else 0)
    found = []
    for cells, row, (kind, subject) in zip(texts, rows, about):
        parts = [(f"  {text}", colour) for text, (_, colour) in zip(cells, row)]
        while parts and not parts[-1][0].strip():
            parts.pop()
        parts[-1:] = [(text.rstrip(), colour) for text, colour in parts[-1:]]
        found.append(Line(tuple(parts), kind, subject))
    return found


def _claims(model: Row, width: int, most: int) -> Iterator[Line]:
    claims: list[Row] = [row for row in model["claims"] if not str(row["path"]).startswith(IN_LANE)]
    shown = claims
    if most and len(claims) > most:
        shown = claims_first(claims)[:most]
    lines = _table([_claim(row) for row in shown], [(PATH, str(row["path"])) for row in shown], width)
    yield from _section("claims", claims, lines, most, "git claim list")
    server: list[Row] = model.get("server_claims", [])
    for row, cells in zip(server, aligned(claim_table(server)[0])):
        yield Line(((f"{_INDENT}at the server: {'  '.join(cells).rstrip()}", "yellow"),), PATH, str(row["path"]))
    if model.get("waits"):
        yield plain(f"waiting: {len(model['waits'])}", "bold")
        for words in waiting_lines(model, max(20, width - len(_INDENT)) if width else 0):
            yield plain(_INDENT + words, "yellow")


def _claim(row: Row) -> list[tuple[str, str]]:
    units = f" x{row['units']}" if row["kind"] == "resource" and row["units"] != 1 else ""
    many = len(row.get("waiters", ()))
    left = row["expires_in_seconds"]
    state = "expired" if row["silent"] else "reserved" if row.get("reserved") else "alive"
    if state == "alive" and isinstance(left, int):
        state = f"{_short(min(left, row['ttl_seconds']))} left"
    why = f": {row['reason']}" if row["reason"] else ""
    return [
        (f"{row['path']}{units}", "bold"), (row["agent"], "cyan"), (row["mode"] if row["mode"] != "write" else "", ""),
        (f"{many} waiting" if many else "", "yellow"),
        (state, "yellow" if row["silent"] or row.get("reserved") else "green"), (f"{ago(row['since'])}{why}", "dim"),
    ]  # fmt: skip


def _short(seconds: int) -> str:
    """A duration without seconds that do not matter."""
    return format_duration(seconds - seconds % 60 if seconds > 600 else seconds)


def since_words(row: Row) -> str:
    """Since when one lands or waits; of a turn that was taken again, when that was."""
    return f"{'renewed' if row.get('renewed') else 'since'} {ago(row['since'])}"


def _landing(model: Row, width: int, most: int) -> Iterator[Line]:
    landing = model["landing"]
    rows = [("now", "green", row) for row in landing["landing"]]
    rows += [(str(row["position"]), "yellow", row) for row in landing["waiting"]]
    cells = [
        [(place, colour), (row["agent"], "cyan"), (row["reason"], ""), (since_words(row), "dim")]
        for place, colour, row in rows[: most or None]
    ]
    if rows:
        lines = _table(cells, [(AGENT, row["agent"]) for _, _, row in rows], width)
        seconds = landing["check_seconds"]
        took = f", the last check took {format_duration(seconds)}" if seconds else ""
        heading = f"landing on {printable(landing['trunk'])}{took}"
        yield from _section(heading, [row for _, _, row in rows], lines, most, "git coord land --list")


def _agents(model: Row, width: int, most: int) -> Iterator[Line]:
    """Agents that are there, or that expired with something in their hands; the others are counted."""
    doing = _doing(model)
    known = [row for row in model["agents"] if row["activity"] != "ended"]
    shown = [row for row in known if row["activity"] != "expired" or row["agent"] in doing]
    some = agents_first(shown)[:most] if most and len(shown) > most else shown
    rows = []
    for row in some:
        seen = _short(row["silent_seconds"] or 0)
        of = f" (of {row['parent']})" if row["parent"] else ""
        rows.append(
            [
                (f"{row['agent']}{of}", "cyan"), (row["activity"], LIVES[row["activity"]]), (f"seen {seen} ago" if row["silent_seconds"] else "", "dim"),
                (doing.get(row["agent"], ""), ""),
            ]
        )  # fmt: skip
    lines = _table(rows, [(AGENT, row["agent"]) for row in some], width)
    yield from _section("agents", shown, lines, most, "git coord agents")
    if len(known) > len(shown):
        yield plain(f"{_INDENT}expired, with nothing in their hands: {len(known) - len(shown)}", "dim")


def _doing(model: Row) -> dict[str, str]:
    """The work of each agent: its wait, else its task, else the reason of its claim, else what it holds."""
    found: dict[str, str] = {}
    for row in model["claims"]:
        found[row["agent"]] = row["reason"] or found.get(row["agent"]) or f"has {row['path']}"
    found |= {row["owner"]: f"{row['id']}: {row['title']}" for row in model["tasks"] if row["owner"]}
    found |= {row["agent"]: f"waits for {row['paths'][0]}" for row in model.get("waits", ())}
    return found


def _tasks(model: Row, width: int, most: int) -> Iterator[Line]:
    tasks: list[Row] = model["tasks"]
    if not tasks:
        return
    colours = {"needs-human": "red", "blocked": "yellow", "review": "yellow", "active": "green"}
    some = tasks_first(tasks)[:most] if most and len(tasks) > most else tasks
    rows = [
        [
            (row["id"], "bold"), ("ready" if row["ready"] else row["state"], colours.get(row["state"], "")), (row["owner"], "cyan"),
            (row["priority"] if row["priority"] != "normal" else "", "yellow"), (row["title"], ""),
        ]
        for row in some
    ]  # fmt: skip
    lines = _table(rows, [(TASK, row["id"]) for row in some], width)
    yield from _section("tasks", tasks, lines, most, "git coord task list")


def _approvals(model: Row, width: int, most: int) -> Iterator[Line]:
    rows: list[Row] = model["approvals"]
    cells = [
        [(r["path"], "bold"), (r["approval"], ""), (f"asked by {r['agent']} {ago(r['at'])}", "dim"), (r["rule"], "")]
        for r in rows[: most or None]
    ]
    if rows:
        lines = _table(cells, [(PATH, row["path"]) for row in rows], width)
        yield from _section("approvals", rows, lines, most, "git coord approvals")


def _deploys(model: Row, width: int, most: int) -> Iterator[Line]:
    rows: list[Row] = model["deploys"]
    cells = [
        [
            (r["target"], "bold"), (r["commit"][:12], ""), (r["agent"], "cyan"),
            (r["outcome"], "green" if r["outcome"] in ("ok", "unverified") else "yellow"), (ago(r["at"]), "dim"),
        ]
        for r in rows[: most or None]
    ]  # fmt: skip
    if rows:
        lines = _table(cells, [(PATH, f"@deploy/{row['target']}") for row in rows], width)
        yield from _section("deploys", rows, lines, most, "git coord deploys")


def _contention(model: Row, width: int) -> Iterator[Line]:
    rows: list[Row] = model["contention"]
    if rows:
        cells = [[(row["path"], "bold"), (row["words"], "yellow"), (row["help"][0], "")] for row in rows]
        lines = _table(cells, [(PATH, row["path"]) for row in rows], width)
        yield from _section("hot spots", rows, lines, 0, "")
