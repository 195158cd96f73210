"""Control flow of a shell command: lists, pipes, branches, loops, subshells. `interpreter.py` runs the commands in them."""

from __future__ import annotations

from gitcoord.shell.state import NOT_KNOWN, ShellState, text_in
from gitcoord.shell.syntax import (
    AND_OR,
    CASE,
    COMMAND,
    FOR,
    FUNCTION,
    GROUP,
    IF,
    LIST,
    PIPE,
    SUBSHELL,
    TEST,
    WHILE,
    Node,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Run

MAX_LOOP = 64


def follow(run: Run, node: Node) -> None:
    run.depth += 1  # `call` stops what goes too deep
    if node.kind != COMMAND:
        run.output = NOT_KNOWN
    if node.redirects and node.kind != COMMAND:
        outer, piped = run.stdin, run.piped
        run.stdin = run.redirect(node.redirects)
        run.piped = piped and run.stdin[0] == "pipe"
        _by_kind(run, node)
        run.stdin, run.piped = outer, piped
    else:
        _by_kind(run, node)
    if node.kind != COMMAND and not _only_last_prints(node):
        run.output = NOT_KNOWN  # it has only what the last one printed
    run.depth -= 1


def _by_kind(run: Run, node: Node) -> None:
    kind = node.kind
    if kind == COMMAND:
        run.command(node)
    elif kind == AND_OR:
        _and_or(run, node)
    elif kind == PIPE:
        _pipe(run, node)
    elif kind == SUBSHELL:
        in_subshell(run, node.nodes)
    elif kind in (IF, CASE) and run.in_script:
        run.unknown(node.raw, "a branch of a script, which may not be taken")
    elif kind == IF:
        _branches(run, node)
    elif kind == CASE:
        run.words(node)
        _either(run, [(body,) for body in node.nodes], may_skip=True)
    elif kind == FOR:
        run.loop_over(node)
    elif kind == WHILE:
        loop(run, node.nodes)
    elif kind == FUNCTION:
        run.state.functions[node.name] = node.nodes[0]
    elif kind == TEST:
        run.words(node)
    else:  # LIST, GROUP, BROKEN
        for one in node.nodes:
            _statement(run, one)


def in_subshell(run: Run, nodes: tuple[Node, ...]) -> ShellState:
    """Follow these in a subshell: its variables and its directory end with it."""
    outer, run.state = run.state, run.state.copy()
    for one in nodes:
        follow(run, one)
    inner, run.state = run.state, outer
    return inner


def _statement(run: Run, node: Node) -> None:
    """One statement. After it, a cd that may have failed and what was joined to it by && are over."""
    before = run.state.unless_cd_failed
    run.state.unless_cd_failed = ()
    follow(run, node)
    run.state.keep_old_cwds()
    run.state.unless_cd_failed = before


def _and_or(run: Run, node: Node) -> None:
    """A command after && does not run if the one before it fails."""
    skipped: list[ShellState] = []
    sure = _never_fails(node.nodes[0])
    follow(run, node.nodes[0])
    for op, one in zip(node.ops, node.nodes[1:]):
        if op == "||" and _exits(one):
            run.state.unless_cd_failed = ()
            skipped = []
        elif op == "||":
            _either(run, [(one,)], may_skip=True)
        else:
            before = run.state.copy()
            follow(run, one)
            if not sure and not run.state.same(before):
                skipped.append(before)
        sure = sure and _never_fails(one)
    if skipped:
        run.state.merge([run.state, *skipped])


def _pipe(run: Run, node: Node) -> None:
    feed, piped, pipeline, stdin, used = run.feed, run.piped, run.pipeline, run.stdin, run.is_used
    run.pipeline = node.raw
    for index, one in enumerate(node.nodes):
        run.piped = index > 0 or piped
        run.feed = run.output if index else feed
        run.stdin = stdin if not index else ("", None)
        run.is_used = used or not all(_is_one_of(later, _ONLY_READ) for later in node.nodes[index + 1 :])
        in_subshell(run, (one,))
    run.feed, run.piped, run.pipeline, run.stdin, run.is_used = feed, piped, pipeline, stdin, used


def _either(run: Run, ways: list[tuple[Node, ...]], *, may_skip: bool) -> None:
    ends = [in_subshell(run, way) for way in ways]
    run.state.merge([*ends, run.state] if may_skip else ends)


def _branches(run: Run, node: Node) -> None:
    ends = []
    pairs = [*zip(node.nodes[::2], node.nodes[1::2])]
    for condition, body in pairs:
        follow(run, condition)
        ends.append(in_subshell(run, (body,)))
    if len(node.nodes) % 2:
        follow(run, node.nodes[-1])
    run.state.merge([*ends, run.state])


def loop(run: Run, nodes: tuple[Node, ...]) -> None:
    """Follow a loop twice. Values that still change are unknown after that. `while read` goes through the lines that are known."""
    lines = _lines(run) if _reads(nodes) else None
    if lines is not None and len(lines) <= MAX_LOOP:
        outer = run.line, run.stdin, run.piped
        run.stdin, run.piped = ("", None), False
        for run.line in lines:
            for one in nodes:
                follow(run, one)
        run.line, run.stdin, run.piped = outer
        return
    for _ in range(2):
        before = run.state.copy()
        _either(run, [nodes], may_skip=True)
        if run.state.same(before):
            return
    run.state.forget(before)
    _either(run, [nodes], may_skip=True)


def _reads(nodes: tuple[Node, ...]) -> bool:
    head = nodes[0].nodes[0] if nodes and nodes[0].kind == LIST and len(nodes[0].nodes) == 1 else None
    return head is not None and head.kind == COMMAND and bool(head.words) and head.words[0].raw == "read"


def _lines(run: Run) -> list[str] | None:
    """The lines of the standard input of a loop, where they are known."""
    how, text = run.stdin
    if not how and run.piped:
        text = text_in(run.feed)
    return [line for line in text.replace("\0", "\n").split("\n") if line] if text is not None else None


def _only_last_prints(node: Node) -> bool:
    """Return whether all that it prints comes from the last of its commands."""
    if node.kind == PIPE:
        return True
    return node.kind in (LIST, GROUP, SUBSHELL, AND_OR) and all(map(_prints_nothing, node.nodes[:-1]))


_ONLY_READ = frozenset(
    ["head", "tail", "wc", "sort", "uniq", "grep", "egrep", "cat", "less", "cut", "tr", "column", "nl", "rg"]
)
_PRINT_NOTHING = frozenset(
    """
cd mkdir true : export set unset test [ touch shopt umask rm cp mv ln rmdir chmod sleep
""".split()  # noqa: SIM905
)
_NEVER_FAIL = frozenset(
    ["cd", "pushd", "popd", "mkdir", "echo", "printf", "true", ":", "export", "set", "source", ".", "touch", "unset"]
)


def _prints_nothing(node: Node) -> bool:
    return node.kind in (TEST, FUNCTION) or _is_one_of(node, _PRINT_NOTHING)


def _never_fails(node: Node) -> bool:
    """Commands that are not expected to fail. A cd that may fail is noted in the state."""
    return _is_one_of(node, _NEVER_FAIL)


def _is_one_of(node: Node, names: frozenset[str]) -> bool:
    return node.kind == COMMAND and (not node.words or node.words[0].raw in names)


def _exits(node: Node) -> bool:
    """Return whether this ends the shell: `|| exit`, `|| { echo no; return 1; }`."""
    if node.kind == GROUP or node.kind == LIST:
        return bool(node.nodes) and _exits(node.nodes[-1])
    return node.kind == COMMAND and bool(node.words) and node.words[0].raw in ("exit", "return", "continue", "break")
