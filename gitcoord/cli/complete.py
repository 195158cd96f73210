"""`git coord complete`: the words that may follow on a command line, from the table and the ledger. The completion of shells calls it.

It prints a line for each word, with its help after a tab; nothing where a shell should go on with file names.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import SESSIONS, printable
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.startup.annotations import Any, Callable
from gitcoord.terminal.call import Call
from gitcoord.terminal.parser import Option, Values, Verb, labels
from gitcoord.terminal.screen import put
from gitcoord.world.open import open_repository

Offers = dict[str, str]  # word -> help
Lookup = Callable[[str], Offers]


def complete(call: Call, values: Values, words: list[str]) -> int:
    """`words` is the command (claim, coord or handoff) and its words so far; the last one is not finished yet."""
    command, line = words[0], words[1:] or [""]
    found = offers(command, line, lambda what: _stored(call, what)) if command in COMMANDS else {}
    current = line[-1].rpartition("=")[2] if line[-1].startswith("--") else line[-1]
    found = {word: help for word, help in found.items() if word.startswith((line[-1], current))}
    call.screen.answer({"words": [{"word": word, "help": help} for word, help in found.items()]})
    if not call.screen.json:
        put(1, "".join(f"{word}\t{printable(help)}\n" for word, help in found.items() if word.isprintable()))
    return 0


def offers(command: str, line: list[str], lookup: Lookup) -> Offers:
    """The words that may replace the line's last word; `lookup` knows what is stored: agents, tasks, ..."""
    *before, current = line
    table = table_of(command)
    name, rest = _verb(command, before)
    if command == "claim" and not name and current.startswith("-"):
        name = "take"
    if name not in table:
        return _verbs(command, name, rest)
    verb = table[name]
    option, count, dashes = _walk(verb, rest)
    if option is None and not dashes and current.startswith("--") and "=" in current:
        option = next((each for each in verb.options if each.name == current[2:].partition("=")[0]), None)
    if option is not None:
        return _values(option, lookup)
    if current.startswith("-") and not dashes:
        return _options(verb)
    wanted = labels(verb.words)
    if count >= len(wanted) and "..." not in verb.words:
        return {}
    label = wanted[min(count, len(wanted) - 1)].strip("[.]") if wanted else ""
    return lookup(verb.completes or _STORED.get(label, ""))


def _verb(command: str, before: list[str]) -> tuple[str, list[str]]:
    """(the verb, or as much of a group's name as is there; the words after it)."""
    names = table_of(command)
    found = ""
    for index, word in enumerate(before):
        longer = f"{found} {word}".strip()
        if longer in names:
            return longer, before[index + 1 :]
        if not any(name.startswith(f"{longer} ") for name in names):
            return ("take", before) if command == "claim" else (found, before[index:])
        found = longer
    return found, []


def _verbs(command: str, group: str, rest: list[str]) -> Offers:
    if rest:
        return {}
    found: Offers = {}
    depth = len(group.split())
    for name, verb in table_of(command).items():
        if not group or name.startswith(f"{group} "):
            words = name.split()
            found.setdefault(words[depth], verb.help if len(words) == depth + 1 else _group_help(words[: depth + 1]))
    return found


def _group_help(words: list[str]) -> str:
    from gitcoord.cli.table.coord import GROUPS

    return GROUPS[" ".join(words)]


def _options(verb: Verb) -> Offers:
    return {f"--{option.name}" + "=" * (option.kind != "flag"): option.help for option in verb.options}


def _walk(verb: Verb, words: list[str]) -> tuple[Option | None, int, bool]:
    """(the option whose value comes next, how many words there are besides options, whether '--' was there)."""
    option: Option | None = None
    count = 0
    for index, word in enumerate(words):
        if option is not None:
            option = None
        elif word == "--":
            return None, count + len(words) - index - 1, True
        elif word.startswith("-") and len(word) > 1:
            found = (each for each in verb.options if word in (f"--{each.name}", f"-{each.short}"))
            option = next((each for each in found if each.kind != "flag"), None)
        else:
            count += 1
    return option, count, False


def _values(option: Option, lookup: Lookup) -> Offers:
    if "|" in option.kind:
        return dict.fromkeys(option.kind.split("|"), "")
    return lookup(_STORED.get(option.label, ""))


# --- what is stored -----------------------------------------------------------------------------------------------

# The label of a word or an option's value -> what it is completed with.
_STORED = {
    "AGENT": "agents", "TASK": "tasks", "ROLE": "roles", "TARGET": "targets", "SEQUENCE": "sequences", "COMMIT": "commits",
    "BRANCH": "branches", "KIND": "kinds", "STATE": "states", "RECORD": "records", "TOOL": "tools",
}  # fmt: skip


def _stored(call: Call, what: str) -> Offers:
    """The stored words of this kind; none where the repository or its ledger cannot be read, since a shell has no use for an error."""
    if what in _FIXED:
        module, _, name = _FIXED[what].partition(":")
        found = getattr(__import__(f"gitcoord.{module}", fromlist=(name,)), name)
        return {getattr(each, "name", each): "" for each in found}
    if what not in _READ:
        return {}
    try:
        ctx = open_repository(call.environ, writing=False)
        return _READ[what](Call(ctx, call.screen, call.environ))
    except (GitcoordError, OSError):
        return {}


# The same in every repository: "package.module:name".
_FIXED = {
    "kinds": "ledger.kinds:KINDS", "states": "tasks.model:STATES", "records": "tasks.cli_schema:SCHEMAS",
    "tools": "guard.setup.known:KNOWN",
}  # fmt: skip


def _agents(call: Call) -> Offers:
    return {ref.removeprefix(SESSIONS): "" for ref in call.ctx.store.list_refs(SESSIONS)}


def _claims(call: Call) -> Offers:
    from gitcoord.claims.query import listing

    actor = call.actor_or_none()
    rows: Any = listing(call.ctx, actor, mine=actor is not None)["claims"]
    return {_relative(call, row["path"]): row["reason"] for row in rows}


def _relative(call: Call, path: str) -> str:
    prefix = call.ctx.repo.prefix
    return path.removeprefix(prefix) if path.startswith(("@", prefix)) else f":/{path}"


def _tasks(call: Call) -> Offers:
    from gitcoord.tasks.service import listing

    rows: Any = listing(call.ctx)["tasks"]
    return {row["id"]: f"{row['title']} ({row['state']})" for row in rows}


def _handoffs(call: Call) -> Offers:
    from gitcoord.handoff.service import listing

    rows: Any = listing(call.ctx, call.actor_or_none())["handoffs"]
    return {row["id"]: f"from {row['from']}: {row['next']}" for row in rows}


def _approvals(call: Call) -> Offers:
    from gitcoord.gates.approvals import listing

    return {row.id: row.path for row in listing(call.ctx)}


def _worktrees(call: Call) -> Offers:
    from gitcoord.worktrees.add import all_trees

    return {tree.name: tree.path for tree in all_trees(call.ctx) if tree.name}


def _commits(call: Call) -> Offers:
    heads = call.ctx.store.list_refs("refs/tags/")
    return {"HEAD": "", **_branches(call), **{ref.removeprefix("refs/tags/"): "" for ref in heads}}


def _branches(call: Call) -> Offers:
    return {ref.removeprefix("refs/heads/"): "" for ref in call.ctx.store.list_refs("refs/heads/")}


def _declared(section: str) -> Callable[[Call], Offers]:
    """The names of the sections of this kind in the project's settings."""

    def read(call: Call) -> Offers:
        from gitcoord.claims.facts import project_settings
        from gitcoord.ledger.snapshot import read_snapshot

        keys = [key for key, _ in project_settings(call.ctx, read_snapshot(call.ctx))]
        names = [key[len(section) + 1 :].rpartition(".")[0] for key in keys if key.startswith(f"{section}.")]
        return {name: "" for name in names if name}

    return read


_READ: dict[str, Callable[[Call], Offers]] = {
    "agents": _agents, "claims": _claims, "tasks": _tasks, "handoffs": _handoffs, "approvals": _approvals,
    "worktrees": _worktrees, "commits": _commits, "branches": _branches, "roles": _declared("role"),
    "targets": _declared("deploy"), "sequences": _declared("sequence"),
}  # fmt: skip
