"""tree-sitter's tree of a bash command, made into the plain syntax tree. Nothing else knows tree-sitter.

What tree-sitter-bash 0.25 is known to do: words behind the target of a redirection become further targets (they are
arguments); what follows a here-document's start in its line hangs below it; between double quotes, blanks before a `$`
belong to the `$`. Words are therefore cut out of the text as they stand, and taken apart by `shell/words.py`.
"""

from __future__ import annotations

from gitcoord.shell.parse_words import MAX_DEPTH, WordReader
from gitcoord.shell.parse_words import TooDeep as TooDeep
from gitcoord.shell.syntax import (
    AND_OR,
    BROKEN,
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
    Assignment,
    Node,
    Redirect,
    Word,
)
from gitcoord.startup.treesitter import NoParser as NoParser
from gitcoord.startup.treesitter import parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node as Tree


def tree(data: bytes) -> Node:
    data = _spaced(data)
    root = parser().parse(data).root_node
    if root.has_error and b"<>" in data:
        # The grammar has no '<>', which may write its file. '>|' does too, and has the same length.
        instead = data.replace(b"<>", b">|")
        again = parser().parse(instead).root_node
        if not again.has_error:
            data, root = instead, again
    maker = TreeReader(data)
    made = maker.sequence(root.children)
    if root.has_error or maker.misread:
        return made._replace(kind=BROKEN, name="it cannot be parsed as a whole")
    return made


_TARGETS = ("file_redirect", "herestring_redirect", "heredoc_redirect")


def _spaced(data: bytes) -> bytes:
    """A blank before a backslash that begins a line: without it the grammar takes the line for more words of the one before."""
    if b"\n\\" not in data:
        return data
    return data.replace(b"\\\n", b"\\\0").replace(b"\n\\", b"\n \\").replace(b"\\\0", b"\\\n")


class TreeReader(WordReader):
    # --- statements --------------------------------------------------------------------------------------------------

    def sequence(self, children: list[Tree]) -> Node:
        """Statements one after the other; one before '&' is run in a shell of its own."""
        made: list[Node] = []
        for child in children:
            if child.type == "&" and made:
                made[-1] = Node(SUBSHELL, made[-1].raw, nodes=(made[-1],))
            elif child.is_named and child.type != "comment":
                made.append(self.statement(child))
        return Node(LIST, nodes=tuple(made))

    def statement(self, node: Tree) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep
        maker = getattr(self, "make_" + node.type, None)
        made: Node = maker(node) if maker else self.other(node)
        self.depth -= 1
        return made

    def other(self, node: Tree) -> Node:
        """A node that is no statement by itself. Commands inside its words run too."""
        if node.type in ("ERROR", "do_group", "program"):
            return self.sequence(node.children)
        return Node(TEST, self.raw(node), (self.word(node),))

    def make_command(self, node: Tree) -> Node:
        words: list[Word] = []
        assigns: list[Assignment] = []
        redirects: list[Redirect] = []
        end = -1
        for child in node.children:
            if child.type == "variable_assignment":
                assigns.append(self.assignment(child))
            elif child.type in _TARGETS:
                made, extra, _ = self.redirect(child)
                redirects += made
                words += extra
            elif child.type != "comment":
                self.check(child)
                self.join(words, child, end)
                end = child.end_byte
        return Node(COMMAND, self.raw(node), tuple(words), tuple(assigns), tuple(redirects))

    def join(self, words: list[Word], node: Tree, end: int) -> None:
        """One more word; it is the same one where no blank stands before it, also where it goes on in the next line."""
        more = self.word(node)
        if words and end >= 0 and not self.data[end : node.start_byte].replace(b"\\\n", b""):
            before = words.pop()
            more = Word((*before.pieces, *more.pieces), before.raw + more.raw)
        words.append(more)

    def make_variable_assignment(self, node: Tree) -> Node:
        return Node(COMMAND, self.raw(node), assigns=(self.assignment(node),))

    def make_variable_assignments(self, node: Tree) -> Node:
        found = tuple(self.assignment(child) for child in node.children if child.type == "variable_assignment")
        return Node(COMMAND, self.raw(node), assigns=found)

    make_declaration_command = make_unset_command = make_command

    def make_list(self, node: Tree) -> Node:
        """`a && b || c` hangs to the left; as one row here, however long."""
        nodes: list[Node] = []
        ops: list[str] = []
        while node.type == "list" and len(node.children) == 3:
            left, op, right = node.children
            nodes.append(self.statement(right))
            ops.append(op.type)
            node = left
        nodes.append(self.statement(node) if node.type != "list" else self.sequence(node.children))
        if any(op not in ("&&", "||") for op in ops):
            return Node(LIST, nodes=tuple(reversed(nodes)))
        return Node(AND_OR, nodes=tuple(reversed(nodes)), ops=tuple(reversed(ops)))

    def make_pipeline(self, node: Tree) -> Node:
        return Node(
            PIPE, self.raw(node), nodes=tuple(self.statement(child) for child in node.children if child.is_named)
        )

    def make_negated_command(self, node: Tree) -> Node:
        return self.sequence(node.children)

    def make_subshell(self, node: Tree) -> Node:
        return Node(SUBSHELL, self.raw(node), nodes=(self.sequence(node.children),))

    def make_compound_statement(self, node: Tree) -> Node:
        if node.children and node.children[0].type == "((":
            return Node(TEST, self.raw(node), (self.word(node),))
        return Node(GROUP, self.raw(node), nodes=(self.sequence(node.children),))

    def make_if_statement(self, node: Tree) -> Node:
        nodes: list[Node] = []
        part: list[Tree] = []
        for child in node.children:
            if child.type in ("then", "fi", "elif_clause", "else_clause"):
                if part:
                    nodes.append(self.sequence(part))
                part = []
                if child.type == "elif_clause":
                    nodes += self.make_if_statement(child).nodes
                elif child.type == "else_clause":
                    nodes.append(self.sequence(child.children))
            elif child.type not in ("if", "elif"):
                part.append(child)
        if part:
            nodes.append(self.sequence(part))
        return Node(IF, self.raw(node), nodes=tuple(nodes))

    def make_while_statement(self, node: Tree) -> Node:
        body = node.child_by_field_name("body")
        before = [child for child in node.children if body is None or child.start_byte < body.start_byte]
        inside = body.children if body is not None else []
        return Node(WHILE, self.raw(node), nodes=(self.sequence(before), self.sequence(inside)))

    def make_c_style_for_statement(self, node: Tree) -> Node:
        """Its head is arithmetic; what its variable holds cannot be told."""
        body = node.child_by_field_name("body")
        name = node.child_by_field_name("initializer")
        head = Node(TEST, self.raw(node), tuple(self.word(child) for child in node.children if child != body))
        inside = self.sequence(body.children if body is not None else [])
        unset = (
            Node(COMMAND, "", assigns=(Assignment(self.raw(name).partition("=")[0], None, indexed=True),))
            if name
            else head
        )
        return Node(WHILE, self.raw(node), nodes=(head, unset, inside))

    def make_for_statement(self, node: Tree) -> Node:
        name = node.child_by_field_name("variable")
        words = tuple(self.word(child) for child in node.children_by_field_name("value"))
        body = node.child_by_field_name("body")
        inside = self.sequence(body.children if body is not None else [])
        given = words if any(child.type == "in" for child in node.children) else (Word(('"$@"',), '"$@"'),)
        return Node(FOR, self.raw(node), given, nodes=(inside,), name=self.raw(name) if name else "")

    def make_case_statement(self, node: Tree) -> Node:
        value = node.child_by_field_name("value")
        bodies = []
        for item in node.children:
            if item.type == "case_item":
                patterns = item.children_by_field_name("value")
                bodies.append(self.sequence([child for child in item.children if child not in patterns]))
        return Node(CASE, self.raw(node), (self.word(value),) if value else (), nodes=tuple(bodies))

    def make_function_definition(self, node: Tree) -> Node:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        inside = self.statement(body) if body is not None else Node(LIST)
        redirects: list[Redirect] = []
        for child in node.children_by_field_name("redirect"):
            redirects += self.redirect(child)[0]
        if redirects:
            inside = Node(GROUP, nodes=(inside,), redirects=tuple(redirects))
        return Node(FUNCTION, self.raw(node), nodes=(inside,), name=self.raw(name) if name else "")

    # --- redirections ------------------------------------------------------------------------------------------------

    def make_redirected_statement(self, node: Tree) -> Node:
        body = node.child_by_field_name("body")
        made = self.statement(body) if body is not None else Node(COMMAND, self.raw(node))
        redirects: list[Redirect] = []
        words: list[Word] = []
        after: list[Tree] = []
        for child in node.children:
            if child.type in _TARGETS:
                found, extra, follows = self.redirect(child)
                redirects += found
                words += extra
                after += follows
        return self.continued(_attached(made, tuple(redirects), tuple(words)), after)

    def continued(self, made: Node, after: list[Tree]) -> Node:
        """The rest of the line behind a here-document's start: a pipe, then && and ||."""
        op = ""
        for child in after:
            if child.type == "pipeline" and child.children[0].type in ("|", "|&"):
                made = Node(PIPE, nodes=(made, *(self.statement(one) for one in child.children if one.is_named)))
            elif not child.is_named:
                op = child.type
            elif op in ("&&", "||"):
                made = Node(AND_OR, nodes=(made, self.statement(child)), ops=(op,))
            elif op in ("|", "|&"):
                made = Node(PIPE, nodes=(made, self.statement(child)))
            else:
                made = Node(LIST, nodes=(made, self.statement(child)))
        return made

    def redirect(self, node: Tree) -> tuple[list[Redirect], list[Word], list[Tree]]:
        """Redirections, words that are arguments, and statements that follow in the line."""
        if node.type == "heredoc_redirect":
            return self.here_document(node)
        if node.type == "herestring_redirect":
            return [Redirect("<<<", self.word(node.children[-1]), self.raw(node))], [], []
        op = next((child.type for child in node.children if not child.is_named), ">")
        targets: list[Word] = []
        end = -1
        for child in node.children_by_field_name("destination"):
            self.check(child)
            self.join(targets, child, end)
            end = child.end_byte
        targets = [word for word in targets if word.raw]
        if op.endswith("&-"):  # closes a descriptor and has no target
            return [], targets, []
        if not targets:
            return [], [], []
        return [Redirect(op, targets[0], f"{op} {targets[0].raw}")], targets[1:], []

    def here_document(self, node: Tree) -> tuple[list[Redirect], list[Word], list[Tree]]:
        redirects: list[Redirect] = []
        words: list[Word] = []
        after: list[Tree] = []
        start, body = "", None
        for child in node.children:
            if child.type == "heredoc_start":
                start = self.raw(child)
            elif child.type == "heredoc_body":
                body = child
            elif child.type in _TARGETS:
                found, extra, follows = self.redirect(child)
                redirects += found
                words += extra
                after += follows
            elif child.type in ("heredoc_end", "<<", "<<-", "file_descriptor"):
                continue
            elif child.type in (
                "word",
                "string",
                "raw_string",
                "concatenation",
                "number",
                "simple_expansion",
                "expansion",
            ):
                words.append(self.word(child))
            else:
                after.append(child)
        literal = any(char in start for char in "'\"\\")
        text = self.word(body, strip=False) if body is not None else Word(("",), "")
        return [*redirects, Redirect("<<", text, f"<<{start}", literal)], words, after


def _attached(node: Node, redirects: tuple[Redirect, ...], words: tuple[Word, ...]) -> Node:
    """Redirections belong to the last command of what they stand behind."""
    if node.kind == COMMAND:
        return node._replace(redirects=node.redirects + redirects, words=node.words + words)
    if node.kind in (PIPE, AND_OR) or node.kind == LIST and node.nodes:
        return node._replace(nodes=(*node.nodes[:-1], _attached(node.nodes[-1], redirects, words)))
    if node.redirects or node.kind in (GROUP, SUBSHELL, LIST):
        return node._replace(redirects=node.redirects + redirects)
    return Node(GROUP, node.raw, nodes=(node,), redirects=redirects)
