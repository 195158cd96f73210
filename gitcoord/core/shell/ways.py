"""The ways that a command may take: lists, pipes, branches, loops, shells inside shells."""

from gitcoord.core.shell.found import Found
from gitcoord.core.shell.state import NOT_KNOWN, State
from gitcoord.core.shell.syntax import (
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
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.shell.syntax import Node, Redirect

MAX_LOOP = 64


class Ways(Found):
    """`state` is the present shell's; `output` is what the last command prints, as far as that is known."""

    def __init__(self) -> None:
        super().__init__()
        self.output = NOT_KNOWN
        self.feed = NOT_KNOWN  # what the command before in a pipe prints
        self.piped = False
        self.stdin: tuple[str, str | None] = ("", None)  # of the group around
        self.depth = 0

    # What `run.py` knows.

    def command(self, node: "Node") -> None:
        raise NotImplementedError

    def loop_over(self, node: "Node") -> None:
        raise NotImplementedError

    def words(self, node: "Node") -> None:
        raise NotImplementedError

    def redirect(self, redirects: "tuple[Redirect, ...]") -> "tuple[str, str | None]":
        raise NotImplementedError

    def node(self, node: "Node") -> None:
        self.depth += 1  # `call` stops what goes too deep
        if node.kind != COMMAND:
            self.output = NOT_KNOWN
        if node.redirects and node.kind != COMMAND:
            outer, self.stdin = self.stdin, self.redirect(node.redirects)
            self.follow(node)
            self.stdin = outer
        else:
            self.follow(node)
        self.depth -= 1

    def follow(self, node: "Node") -> None:
        kind = node.kind
        if kind == COMMAND:
            self.command(node)
        elif kind == AND_OR:
            self.and_or(node)
        elif kind == PIPE:
            self.pipe(node)
        elif kind == SUBSHELL:
            self.apart(node.nodes)
        elif kind == IF:
            self.branches(node)
        elif kind == CASE:
            self.words(node)
            self.either([(body,) for body in node.nodes], may_skip=True)
        elif kind == FOR:
            self.loop_over(node)
        elif kind == WHILE:
            self.loop(node.nodes)
        elif kind == FUNCTION:
            self.state.functions[node.name] = node.nodes[0]
        elif kind == TEST:
            self.words(node)
        else:  # LIST, GROUP, BROKEN
            for one in node.nodes:
                self.settled(one)

    def apart(self, nodes: "tuple[Node, ...]") -> State:
        """In a shell of its own: what it changes in itself ends with it."""
        outer, self.state = self.state, self.state.copy()
        for one in nodes:
            self.node(one)
        inner, self.state = self.state, outer
        return inner

    def settled(self, node: "Node") -> None:
        """One statement. After it, a cd that may have failed and what was joined to it by && are over."""
        before = self.state.maybe
        self.state.maybe = ()
        self.node(node)
        self.state.stay()
        self.state.maybe = before

    def and_or(self, node: "Node") -> None:
        """What stands behind && is not run if what stands before it fails."""
        skipped: list[State] = []
        sure = _never_fails(node.nodes[0])
        self.node(node.nodes[0])
        for op, one in zip(node.ops, node.nodes[1:]):
            if op == "||" and _leaves(one):
                self.state.maybe = ()
                skipped = []
            elif op == "||":
                self.either([(one,)], may_skip=True)
            else:
                before = self.state.copy()
                self.node(one)
                if not sure and not self.state.same(before):
                    skipped.append(before)
            sure = sure and _never_fails(one)
        if skipped:
            self.state.become([self.state, *skipped])

    def pipe(self, node: "Node") -> None:
        feed, piped = self.feed, self.piped
        for index, one in enumerate(node.nodes):
            self.piped = index > 0 or piped
            self.feed = self.output if index else feed
            self.apart((one,))
        self.feed, self.piped = feed, piped

    def either(self, ways: "list[tuple[Node, ...]]", *, may_skip: bool) -> None:
        ends = [self.apart(way) for way in ways]
        self.state.become([*ends, self.state] if may_skip else ends)

    def branches(self, node: "Node") -> None:
        ends = []
        pairs = [*zip(node.nodes[::2], node.nodes[1::2])]
        for condition, body in pairs:
            self.node(condition)
            ends.append(self.apart((body,)))
        if len(node.nodes) % 2:
            self.node(node.nodes[-1])
        self.state.become([*ends, self.state])

    def loop(self, nodes: "tuple[Node, ...]") -> None:
        """Until nothing new is learned; what still changes after that is not known."""
        for _ in range(2):
            before = self.state.copy()
            self.either([nodes], may_skip=True)
            if self.state.same(before):
                return
        self.state.forget(before)
        self.either([nodes], may_skip=True)


def _never_fails(node: "Node") -> bool:
    """Nothing that is ever expected to fail. A cd that may fail says so itself."""
    names = (
        "cd",
        "pushd",
        "popd",
        "mkdir",
        "echo",
        "printf",
        "true",
        ":",
        "export",
        "set",
        "source",
        ".",
        "touch",
        "unset",
    )
    return node.kind == COMMAND and (not node.words or node.words[0].raw in names)


def _leaves(node: "Node") -> bool:
    """Whether this ends the shell: `|| exit`, `|| { echo no; return 1; }`."""
    if node.kind == GROUP or node.kind == LIST:
        return bool(node.nodes) and _leaves(node.nodes[-1])
    return node.kind == COMMAND and bool(node.words) and node.words[0].raw in ("exit", "return", "continue", "break")
