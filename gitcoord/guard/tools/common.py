"""Helpers of the agent tools' files: effects of an action, patches, JSON in and out.

A table says of each action of a tool what it does and under which names its arguments carry paths. An action that
its table calls a write, a read or a shell command and that has another shape is an error: it could not be judged.
"""

from __future__ import annotations

from _json import make_scanner

from gitcoord.base.codec import Record, dumps
from gitcoord.base.names import shell_word
from gitcoord.startup.annotations import Any
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators.tool_event import AFTER, ALLOW, BEFORE, OTHER, START, SUBAGENT_START, Answer, Reply, ToolEvent

Table = dict[str, tuple[str, ...]]


WRITE, READ, SEARCH, SHELL, PATCH = "write", "read", "search", "shell", "patch"


def actions(*groups: tuple[str, ...]) -> Table:
    """A table of actions from groups of names: ('Write Edit', WRITE, 'file_path')."""
    return {name: group[1:] for group in groups for name in group[0].split()}


def events(**names: str) -> dict[str, str]:
    """A table of events, each with its phase: before='PreToolUse preToolUse'."""
    return {name: phase.replace("_", "-") for phase, listed in names.items() for name in listed.split()}


# What servers of files call their tools, whatever tool asks them; the name of the server comes before.
_MCP_TOOLS = actions(
    ("write_file edit_file", WRITE, "path", "file_path"),
    ("edit_block", WRITE, "file_path", "path"),
    ("create_directory", WRITE, "path"),
    ("move_file", WRITE, "source", "destination"),
    ("read_file", READ, "path", "file_path"),
    ("read_text_file read_media_file", READ, "path"),
    ("read_multiple_files", READ, "paths"),
)
_RUN = "execute_command run_command run_shell_command shell_exec start_process"
# Such names mean other things elsewhere, so they count only where a path, or a command, is given.
_MCP_IF_GIVEN = actions(
    ("create_file append_file delete_file remove_file", WRITE, "path", "file_path"),
    ("delete_directory", WRITE, "path"),
    ("copy_file", WRITE, "destination"),
    (_RUN, SHELL, "command", "cwd", "workdir", "working_dir", "working_directory"),
)
# An action in no table that names a file and carries text for it writes that file, whatever it is called.
_GUESSED = (WRITE, "file_path", "filePath", "notebook_path", "target_file")
_TEXTS = ("content", "contents", "new_string", "new_str", "newString", "new_source", "file_text", "edits")
_PATTERNS = ("glob", "include", "include_pattern", "glob_pattern")  # how searches name the files that they look into
_MANY = ("edits", "replacements", "files")  # lists whose entries may name a file each
_HEADS = ("*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:")


class ActionEffects(NamedTuple):
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    command: str = ""
    cwd: str = ""  # the directory in which the command runs, where the action says so


NOTHING = ActionEffects()


def effects_of(table: Table, name: str, args: Record, patch: str = "") -> ActionEffects:
    """The effects of an action; ValueError if the action is known and its arguments are malformed."""
    kind, *keys = table.get(name) or _mcp_action(name, args) or _guess(args)
    if kind == WRITE:
        return ActionEffects(writes=_paths(name, args, keys, needed=True))
    if kind in (READ, SEARCH):
        places = _paths(name, args, keys, needed=kind == READ)
        return ActionEffects(reads=places if kind == READ else (*places, *_pattern_directories(args, places)))
    if kind == PATCH:
        text = patch or next((args[key] for key in keys if isinstance(args.get(key), str)), "")
        return ActionEffects(writes=_patch(name, text))
    if kind == SHELL:
        command = _command(name, args.get(keys[0]))
        cwd = next((args[key] for key in keys[1:] if isinstance(args.get(key), str)), "")
        return ActionEffects(
            writes=patched_files(command) if "*** Begin Patch" in command else (), command=command, cwd=cwd
        )
    return NOTHING


def with_effects(
    event: ToolEvent, table: Table, action: str, given: object, *, failed: bool = False, spent: int = 0
) -> ToolEvent:
    """The event with what its action does, or did; as it is where it is about no action. `given`: the action's arguments."""
    if event.phase not in (BEFORE, AFTER):
        return event
    if event.phase == BEFORE and not action:
        raise ValueError("the event names no action")
    args = arguments(given)
    patch = given if isinstance(given, str) and not args else ""
    found = (effects_of if event.phase == BEFORE else effects_after)(table, action, args, patch)
    return event._replace(
        writes=found.writes,
        reads=found.reads,
        command=found.command,
        cwd=join_cwd(event.cwd, found.cwd) if found.command else event.cwd,
        failed=event.phase == AFTER and failed,
        spent=spent,
        input={"patch": patch} if patch else args,
    )


def effects_after(table: Table, name: str, args: Record, patch: str = "") -> ActionEffects:
    """The effects of a finished action, which is not judged any more, so malformed arguments are ignored."""
    try:
        return effects_of(table, name, args, patch)
    except ValueError:
        return NOTHING


def _mcp_action(name: str, args: Record) -> tuple[str, ...] | None:
    for mark in ("__", ":", "/"):
        if mark in name:
            last = name.rpartition(mark)[2]
            also = _MCP_IF_GIVEN.get(last, ())
            asked = also[1:2] if also[:1] == (SHELL,) else also[1:]
            return _MCP_TOOLS.get(last) or (also if any(key in args for key in asked) else None)
    return None


def _guess(args: Record) -> tuple[str, ...]:
    named = any([args.get(key) is not None for key in _GUESSED[1:]])
    return _GUESSED if named and any([key in args for key in _TEXTS]) else ("",)


def _paths(name: str, args: Record, keys: list[str], *, needed: bool) -> tuple[str, ...]:
    found: list[str] = []
    for holder in (args, *_entries(args, keys)):
        for key in keys:
            if holder.get(key) is not None:
                value = holder[key]
                found += [_path(name, item) for item in (value if isinstance(value, list) else [value])]
    if needed and not found:
        raise ValueError(f"'{name}' names no file")
    return tuple(dict.fromkeys(found))


def _pattern_directories(args: Record, places: tuple[str, ...]) -> list[str]:
    """Directories that a search's file pattern begins with: 'secret/**' reads below 'secret'."""
    found = []
    for pattern in [args[key] for key in _PATTERNS if isinstance(args.get(key), str)]:
        plain = pattern
        for mark in "*?[{\0":
            plain = plain.partition(mark)[0]
        below = plain.rpartition("/")[0] if plain != pattern else pattern
        found += [join_cwd(place, below) for place in places or ("",)] if below and below[0] != "!" else []
    return found


def _entries(args: Record, keys: list[str]) -> list[Record]:
    entries: list[Record] = []
    for many in _MANY:
        value = args.get(many)
        for entry in value if isinstance(value, list) else ():
            if isinstance(entry, dict):
                entries.append(entry)
            elif many == "files":
                entries.append({keys[0]: entry})
    return entries


def _path(name: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError(f"'{name}' names a file that is no path")
    return value


def _command(name: str, value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return " ".join([shell_word(word) for word in value])
    if not isinstance(value, str):
        raise ValueError(f"'{name}' has no command")
    return value


def _patch(name: str, text: str) -> tuple[str, ...]:
    found = patched_files(text)
    if not found:
        raise ValueError(f"'{name}' has a patch that names no file")
    return found


def patched_files(text: str) -> tuple[str, ...]:
    """The files of a patch in the form of apply_patch. Its lines may be indented; added text begins with '+'."""
    found = []
    for line in text.split("\n"):
        line = line.strip()
        for head in _HEADS:
            if line.startswith(head):
                found.append(_path("apply_patch", line[len(head) :].strip()))
    return tuple(dict.fromkeys(found))


# --- reading events ---------------------------------------------------------------------------------------------------------


def text(data: Record, *keys: str) -> str:
    """The first of these that is a text with something in it; '' where none is."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def required(data: Record, key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the event has no '{key}'")
    return value


def phase_of(known: dict[str, str], name: str, *, about: bool) -> str:
    """The phase of an event; ValueError for an unknown event about an action."""
    if name not in known and about:
        raise ValueError(f"'{name}' is an event about an action that gitcoord does not know")
    return known.get(name, OTHER)


def failure_reply(known: dict[str, str], name: str, message: str, *, about: bool) -> Reply:
    """The reply if gitcoord could not judge: a denial before an action or for an unknown event, otherwise a note."""
    phase = known.get(name, BEFORE if not name or about else OTHER)
    return deny_reply(message) if phase == BEFORE else warn_reply(message)


def arguments(value: object) -> Record:
    """An action's arguments, which some tools send as a text of JSON; {} for anything else."""
    if isinstance(value, str):
        try:
            value = parse(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def sum_counts(*values: object) -> int:
    """The sum of those that are counts."""
    return sum([value for value in values if type(value) is int and 0 < value < 10**15])


def join_cwd(cwd: str, place: str) -> str:
    """The directory of a command: `place` may be relative to the conversation's."""
    if not place or place.startswith("/") or not cwd:
        return place or cwd
    return f"{cwd.rstrip('/')}/{place}"


def is_failure(result: object) -> bool:
    """Whether the result of an action tells of a failure, in one of the usual ways."""
    if isinstance(result, str):
        result = arguments(result)
    if not isinstance(result, dict):
        return False
    if result.get("is_error") is True or result.get("isError") is True or result.get("success") is False:
        return True
    if result.get("error") or result.get("interrupted") is True:
        return True
    codes = [result.get(key) for key in ("exit_code", "exitCode", "exit")]
    return any(type(code) is int and code != 0 for code in codes) or is_failure(result.get("metadata"))


def exit_code(text: object, mark: str) -> int:
    """The number behind the last `mark` of a text: how a tool tells the code with which a command ended; 0 where it does not."""
    word = text.rpartition(mark)[2] if isinstance(text, str) and mark in text else ""
    digits = word[: len(word) - len(word.lstrip("0123456789"))]
    return int(digits) if 0 < len(digits) < 6 else 0


def _pairs(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands twice")  # two readers could take different ones
    return record


def _no_number(word: str) -> None:
    raise ValueError(f"'{word}' is no number")


class _Settings:
    strict = False  # a tool may send raw control characters
    object_hook = None
    object_pairs_hook = staticmethod(_pairs)
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_no_number)
    memo: dict[str, str] = {}


def parse(words: str) -> object:
    """JSON as tools send it: fractions and deep nesting are theirs to use; ValueError for anything that is no JSON."""
    words = words.strip(" \t\r\n\ufeff")
    try:
        value, end = make_scanner(_Settings)(words, 0)  # type: ignore[arg-type]
    except (StopIteration, RecursionError):
        raise ValueError("the event is no JSON") from None
    if end != len(words):
        raise ValueError("something follows the event")
    return value


# --- writing replies --------------------------------------------------------------------------------------------------------


def without_surrogates(words: str) -> str:
    """`words` without halves of surrogate pairs: strict readers refuse the whole answer, and then allow the action."""
    return words.encode("utf-8", "replace").decode("utf-8")


def reason(words: str) -> str:
    """Never empty: a denial without a reason counts for nothing with some tools."""
    return without_surrogates(words).strip() or "gitcoord does not allow this"


def context(event: ToolEvent, answer: Answer, *phases: str) -> str:
    """The text for the agent. It has the reason of a denial at a start, which cannot be denied, and in `phases`."""
    words = answer.context
    if answer.decision != ALLOW and event.phase in (START, SUBAGENT_START, *phases):
        words = f"{reason(answer.reason)}\n{words}"
    return without_surrogates(words).strip()


def json_reply(record: Record) -> Reply:
    return Reply(out=(dumps(record) + "\n").encode())


def deny_reply(words: str) -> Reply:
    """The denial that every tool understands: exit code 2 and a reason on stderr."""
    return Reply(err=(reason(words) + "\n").encode(), code=2)


def warn_reply(words: str) -> Reply:
    """A failure that stops nothing."""
    return Reply(err=(reason(words) + "\n").encode(), code=1)
