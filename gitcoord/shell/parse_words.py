"""Reads words and assignments from tree-sitter's tree; `parse_tree.py` reads the statements."""

from __future__ import annotations

from gitcoord.shell.syntax import COMMAND, Assignment, Node, Redirect, Sub, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tree_sitter import Node as Tree

MAX_DEPTH = 40
_SUBS = ("command_substitution", "process_substitution")


class TooDeep(Exception):
    """Nested more deeply than is looked into."""


class WordReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ascii = data.decode("ascii") if data.isascii() else None
        self.depth = 0
        self.misread = False

    def check(self, node: Tree) -> None:
        """No plain word goes on into the next line: where one does, the grammar was mistaken without a word."""
        if node.type == "command_name" and node.child_count == 1:
            node = node.children[0]
        if node.type in ("word", "number"):
            text = self.data[node.start_byte : node.end_byte]
            self.misread = self.misread or b"\n" in text.replace(b"\\\n", b"")

    def sequence(self, children: list[Tree]) -> Node:
        raise NotImplementedError

    def redirect(self, node: Tree) -> tuple[list[Redirect], list[Word], list[Tree]]:
        raise NotImplementedError

    def text(self, start: int, end: int) -> str:
        if self.ascii is not None:
            return self.ascii[start:end]
        try:
            return self.data[start:end].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return self.data[start:end].decode("utf-8", "replace")

    def raw(self, node: Tree) -> str:
        return self.text(node.start_byte, node.end_byte).strip()

    def assignment(self, node: Tree) -> Assignment:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        appends = any(child.type == "+=" for child in node.children)
        shown = self.raw(name) if name is not None else ""
        indexed = "[" in shown
        shown = shown.partition("[")[0]
        if indexed and name is not None and self.subs(name):
            # What is run to find the place is run first; what is put there is not known either way.
            held = self.word(value) if value is not None else Word((), "")
            return Assignment(shown, Word((*self.word(name).pieces, *held.pieces), held.raw), None, appends, indexed)
        if value is not None and value.type == "array":
            items = tuple(self.word(child) for child in value.children if child.is_named)
            return Assignment(shown, self.word(value), items, appends, indexed)
        return Assignment(shown, self.word(value) if value is not None else None, None, appends, indexed)

    def word(self, node: Tree, *, strip: bool = True) -> Word:
        start, end = node.start_byte, node.end_byte
        if not node.child_count:
            text = self.text(start, end)
            text = text.lstrip() if strip else text
            return Word((text,), text)
        start = self.first(node) if strip else start
        pieces: list[str | Sub] = []
        at = start
        for sub in self.subs(node):
            inside = self.first(sub)  # between quotes, the blanks before it belong to the text
            if inside > at:
                pieces.append(self.text(at, inside))
            pieces.append(self.sub(sub))
            at = sub.end_byte
        if at < end or not pieces:
            pieces.append(self.text(at, end))
        return Word(tuple(pieces), self.text(start, end))

    def first(self, node: Tree) -> int:
        """The start of a node without the blanks that the grammar may put before it."""
        text = self.data[node.start_byte : node.end_byte]
        return node.start_byte + len(text) - len(text.lstrip())

    def subs(self, node: Tree) -> list[Tree]:
        """The commands inside a word, the outermost ones only."""
        if node.type in _SUBS:
            return [node]
        found: list[Tree] = []
        stack = [*reversed(node.children)]
        while stack:
            child = stack.pop()
            if child.type in _SUBS:
                found.append(child)
            elif child.child_count:
                stack += reversed(child.children)
        return found

    def sub(self, node: Tree) -> Sub:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeep
        opening = node.children[0].type if node.children else "$("
        how = opening if opening in ("<(", ">(") else "$("
        children = node.children
        # `$(< file)` is a redirection alone.
        if children and any(child.type == "file_redirect" for child in children):
            made, _, _ = self.redirect(next(child for child in children if child.type == "file_redirect"))
            body = Node(COMMAND, self.raw(node), redirects=tuple(made))
        else:
            body = self.sequence(children)
        self.depth -= 1
        return Sub(how, body)
