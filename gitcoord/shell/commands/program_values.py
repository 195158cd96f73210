"""Values in a program that is given as text: which files an expression names, through variables, joined paths and patterns."""

from __future__ import annotations

from gitcoord.shell import glob
from gitcoord.shell.commands.program_tokens import MARK, NAME, STRING, Token
from gitcoord.shell.interpreter import Run
from gitcoord.shell.paths import dir_name

_PATHS = frozenset(["Path", "PurePath", "join", "resolve", "new", "expand_path", "abspath", "realpath", "str", "fspath", "URL", "Pathname",
                    "file", "normpath", "expanduser", "absolute", "fileURLToPath", "String"])  # fmt: skip
GLOBS = ("glob", "rglob", "iglob", "globSync")


class Values:
    """The tokens of a program, and the files that its expressions name."""

    def __init__(self, run: Run, tokens: list[Token]) -> None:
        self.run, self.tokens = run, tokens
        self.bound: dict[str, tuple[str, ...]] = {}  # variables
        self.used: set[int] = set()  # strings whose part is known
        self.seen: set[str] = set()  # variables likewise

    # --- tokens ------------------------------------------------------------------------------------------------------

    def is_mark(self, at: int, text: str) -> bool:
        return 0 <= at < len(self.tokens) and self.tokens[at].kind == MARK and self.tokens[at].text == text

    def is_one_of(self, at: int, marks: str) -> bool:
        return self.tokens[at].kind == MARK and self.tokens[at].text in marks

    def is_chain(self, at: int) -> bool:
        """Whether a dot and a name follow."""
        return at + 2 < len(self.tokens) and self.is_mark(at + 1, ".") and self.tokens[at + 2].kind == NAME

    def close(self, at: int) -> int:
        """The end of the bracket at `at`."""
        depth = 0
        for end in range(at, min(len(self.tokens), at + 4000)):
            if self.tokens[end].kind == MARK:
                depth += (self.tokens[end].text in "([{") - (self.tokens[end].text in ")]}")
                if not depth:
                    return end
        return len(self.tokens)

    def arguments(self, at: int) -> list[tuple[int, int]]:
        """The spans of a call's arguments, behind its name; also without brackets, as perl and ruby have it."""
        bare = not self.is_mark(at, "(")
        end = self.close(at) if not bare else at
        while bare and end < len(self.tokens) and not self.is_one_of(end, "\n;}|"):
            end += 1
        spans, start, depth = [], at if bare else at + 1, 0
        for here in range(start, end):
            text = self.tokens[here].text if self.tokens[here].kind == MARK else ""
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if text == "," and not depth:
                spans.append((start, here))
                start = here + 1
        return [*spans, (start, end)] if start < end else spans

    # --- values ------------------------------------------------------------------------------------------------------

    def bind(self, at: int) -> None:
        end = at + 2
        while end < len(self.tokens) and not self.is_one_of(end, "\n;"):
            end = self.close(end) + 1 if self.is_one_of(end, "([") else end + 1
        found = self.paths(at + 2, min(end, len(self.tokens)))
        if found:
            self.bound[self.tokens[at].text] = (*self.bound.get(self.tokens[at].text, ()), *found)

    def paths(self, start: int, end: int) -> tuple[str, ...]:
        """The files that an expression names; () where it names none, or that cannot be told."""
        while self.is_mark(start, "\n"):
            start += 1
        if start < end and self.is_mark(start + 1, "=") and self.tokens[start].kind == NAME:  # a keyword
            start += 2
        if start >= end:
            return ()
        found, at = self.head(start, end)
        while at < end and found:
            found, at = self.tail(found, at, end)
        return found

    def head(self, start: int, end: int) -> tuple[tuple[str, ...], int]:
        token = self.tokens[start]
        if token.kind == STRING:
            self.used.add(start)
            return ((token.text,), start + 1) if token.exact and token.text else ((), end)
        if token.kind == MARK and token.text in "[(":
            last = self.close(start)
            spans = self.arguments(start) if token.text == "(" else self.items(start, last)
            return tuple(path for a, b in spans for path in self.paths(a, b)), last + 1
        if token.kind != NAME or token.text == "argv":
            return (), end
        at = start
        while at + 2 < end and self.is_chain(at) and self.tokens[at].text not in self.bound:
            at += 2
        name = self.tokens[at].text
        if self.is_mark(at + 1, "(") and (name in _PATHS or name in GLOBS or name in ("open", "readFileSync")):
            last = self.close(at + 1)
            parts = [self.paths(a, b) for a, b in self.arguments(at + 1)]
            if name in ("open", "readFileSync") or not parts or not parts[0]:
                return (), end
            if name in GLOBS:
                return self.globbed("", parts[0], deep=False), last + 1
            joined = parts[0]
            for more in parts[1:]:
                joined = tuple(f"{one.rstrip('/')}/{other}" for one in joined for other in more) if more else ()
            return joined, last + 1
        if name in ("new", "const", "let", "var", "my", "await") and at + 1 < end:
            return self.head(at + 1, end)
        self.seen.add(name)
        return self.bound.get(name, ()), at + 1

    def items(self, start: int, last: int) -> list[tuple[int, int]]:
        return [(at, at + 1) for at in range(start + 1, last) if self.tokens[at].kind == STRING]

    def tail(self, found: tuple[str, ...], at: int, end: int) -> tuple[tuple[str, ...], int]:
        if self.tokens[at].kind == MARK and self.tokens[at].text in "/+":
            glue = "/" if self.tokens[at].text == "/" else ""
            more, after = self.head(at + 1, end) if at + 1 < end else ((), end)
            return tuple(f"{one.rstrip('/') if glue else one}{glue}{other}" for one in found for other in more), after
        if self.is_mark(at, ".") and at + 1 < end:
            name = self.tokens[at + 1].text
            if name in GLOBS and self.is_mark(at + 2, "("):
                patterns = [path for a, b in self.arguments(at + 2) for path in self.paths(a, b)]
                return self.globbed(found[0], tuple(patterns), deep=name == "rglob"), self.close(at + 2) + 1
            if name in ("resolve", "absolute", "expanduser", "strip", "as_posix"):
                return found, self.close(at + 2) + 1
            if name == "parent":
                return tuple(map(dir_name, found)), at + 2
        goes_on = self.tokens[at].kind == MARK and self.tokens[at].text in ".%[?"
        return () if goes_on else found, end

    def globbed(self, base: str, patterns: tuple[str, ...], *, deep: bool) -> tuple[str, ...]:
        found: list[str] = []
        for pattern in patterns:
            whole = f"{base}/{'**/' if deep else ''}{pattern}" if base else pattern
            for cwd in self.run.state.cwds[:1]:
                found += glob.find(whole, cwd, self.run.listing, deep=True) or ()
        return tuple(found)
