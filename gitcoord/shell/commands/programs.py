"""Programs given as text to python, node, ruby, perl, php and the like: the files that they write, as far as the text names them.

No language is parsed. The text is cut into strings, names and marks; calls that write, delete or run something are known by their names,
whatever the language. A file that the text names where no call is known, beside a write whose target is not, counts as written.
"""

from __future__ import annotations

from gitcoord.shell.commands.program_tokens import MARK, MAX_TOKENS, NAME, SHELL, STRING, Token, tokens_of
from gitcoord.shell.commands.program_values import GLOBS, Values
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.paths import join
from gitcoord.shell.state import Arg
from gitcoord.shell.walk import has_ending, source_files

# Functions, and which of their arguments are files that change.
_FIRST = frozenset(
    """
remove unlink rmtree removedirs rmdir truncate utime chmod chown writeFileSync writeFile appendFileSync appendFile unlinkSync rmSync rm
truncateSync utimesSync chmodSync createWriteStream outputFile outputFileSync writeJson writeJsonSync writeTextFile writeTextFileSync
removeSync emptyDirSync file_put_contents touch delete rm_f rm_rf rm_r to_csv to_json to_excel to_parquet savefig savetxt tofile
binwrite spew
""".split()  # noqa: SIM905
)
_BOTH = frozenset(["rename", "renames", "move", "renameSync", "moveSync", "mv"])
_SECOND = frozenset(
    """
copy copyfile copy2 copytree copyFileSync copyFile cpSync cp symlink link copySync copy_file ln_s symlinkSync linkSync urlretrieve writeLines
""".split()  # noqa: SIM905
)
_WRITERS = ("Bun", "File", "IO", "Deno", "Pathname", "fs", "outputFile")  # whose `write` names its file first
_METHODS = frozenset(["write_text", "write_bytes", "unlink", "touch", "rename", "replace", "rmdir", "chmod", "symlink_to", "hardlink_to",
                      "delete", "rmtree", "write"])  # fmt: skip
_OPENS = frozenset(["open", "openSync", "fopen", "ZipFile", "TarFile", "FileIO", "new", "input", "FileInput"])
_SHELLS = frozenset(["system", "popen", "exec", "execSync", "shell_exec", "passthru", "getoutput", "check_output", "check_call", "spawn",
                     "spawnSync", "execFileSync", "run", "call", "Popen", "qx", "shell"])  # fmt: skip
_HASH = ("node", "nodejs", "deno", "bun", "lua")  # in which '#' begins no comment


def program(run: Run, call: Call, text: str, args: list[Arg]) -> None:
    """Record what a program writes. `args`: the words behind it, which it may take for files."""
    reader = _Reader(run, call, tokens_of(text, hashes=call.name not in _HASH), args)
    if len(reader.tokens) > MAX_TOKENS:
        run.unknown(call.raw, f"{call.name} runs a program that is too long to be looked into")
        return
    reader.go()


def awk(run: Run, text: Arg) -> None:
    """`print > "file"`, `print | "command"`, `system("command")`."""
    tokens = tokens_of(text.text, hashes=True)
    names = {token.text for token in tokens if token.kind == NAME}
    for at in range(1, len(tokens)):
        before, token = tokens[at - 1], tokens[at]
        if before == Token(MARK, ">") and token.kind == STRING:
            run.write(text._replace(text=token.text), "the awk program writes it")
        elif before == Token(MARK, "<") and token.kind == STRING:
            run.read(text._replace(text=token.text), "the awk program reads it")
        elif (
            before == Token(MARK, ">")
            and token.kind == NAME
            and not token.text.isdigit()
            and names & {"print", "printf"}
        ):
            run.unknown(text.raw, "the awk program may write a file that cannot be told")
        elif token.kind == STRING and (before == Token(MARK, "|") or "system" in names):
            run.script(token.text, text.raw)


class _Reader(Values):
    """Follows the calls of a program."""

    def __init__(self, run: Run, call: Call, tokens: list[Token], args: list[Arg]) -> None:
        super().__init__(run, tokens)
        self.call, self.args = call, args
        self.astray = False  # something is written whose name is not known
        self.loose: tuple[str, ...] = ()  # files that a pattern finds

    def go(self) -> None:
        for at in range(len(self.tokens)):
            if self.is_mark(at + 1, "=") and not self.is_mark(at + 2, "=") and self.tokens[at].kind == NAME:
                self.bind(at)
        for at, token in enumerate(self.tokens):
            if token.kind == NAME:
                self.name(at, token.text)
            elif token.kind == SHELL:
                self.shell(token.text)
        named = self.left()
        if self.astray:
            self.written_astray(named)
        self.run.read_all([self.arg(path) for path in named if not self.astray], f"{self.call.name} may read it")
        self.run.unknown(self.call.raw, f"{self.call.name} runs a program, which may do anything")

    # --- calls -------------------------------------------------------------------------------------------------------

    def name(self, at: int, name: str) -> None:
        self.astray = self.astray or name == "inplace"
        if name in GLOBS and self.is_mark(at + 1, "("):
            start = self.receiver(at) if self.is_mark(at - 1, ".") else at
            self.loose += self.paths(start, self.close(at + 1) + 1)
            return
        called = self.is_mark(at + 1, "(") or at + 1 < len(self.tokens) and self.tokens[at + 1].kind != MARK
        dotted = self.is_mark(at - 1, ".")
        writer = name == "write" and (dotted and self.tokens[at - 2].text in _WRITERS or self.call.name == "julia")
        if dotted and name in _METHODS and self.is_mark(at + 1, "(") and not writer:
            self.method(at, name)
            return
        if not called or dotted and name in _COMMON and not self.of_module(at):
            return
        spans = self.arguments(at + 1)
        if name in _OPENS:
            self.opened(at, name, spans)
        elif name in _SHELLS:
            self.runs(spans)
        elif name in _FIRST or name in _BOTH or writer:
            self.target(spans[:1])
            self.target(spans[1:2] if name in _BOTH else [])
        elif name in _SECOND or name in _READERS:
            self.paths(*spans[0]) if spans else None
            self.target(spans[1:2] if name in _SECOND else [])

    def of_module(self, at: int) -> bool:
        return self.tokens[at - 2].kind == NAME and self.tokens[at - 2].text in _MODULES

    def method(self, at: int, name: str) -> None:
        """`Path("a").write_text(...)`: what stands before the dot."""
        start = self.receiver(at)
        spans = self.arguments(at + 1)
        if self.tokens[start].kind == NAME and self.tokens[start].text in _MODULES and start == at - 2:
            targets = spans[:2] if name in ("rename", "replace") else spans[:1]
            for span in targets:
                self.target([span])
            return
        found = self.paths(start, at - 1)
        if name == "replace" and (len(spans) != 1 or not found) or name in ("delete", "write") and not found:
            return  # of a text
        self.write(found)
        if name in ("rename", "replace"):
            self.target(spans[:1])

    def receiver(self, at: int) -> int:
        """Where the expression begins that ends before the dot at `at - 1`."""
        start, depth = at - 2, 0
        if self.is_mark(start, ")"):
            while start > 0:
                if self.tokens[start].kind == MARK:
                    depth += (self.tokens[start].text == ")") - (self.tokens[start].text == "(")
                if not depth:
                    break
                start -= 1
            start -= start > 0 and self.tokens[start - 1].kind == NAME
        while start >= 2 and self.is_mark(start - 1, ".") and self.tokens[start - 2].kind == NAME:
            start -= 2
        return max(start, 0)

    def opened(self, at: int, name: str, spans: list[tuple[int, int]]) -> None:
        if name == "new" and not (self.is_mark(at - 1, ".") and self.tokens[at - 2].text == "File"):
            return
        texts = [next((t.text for t in self.tokens[a:b] if t.kind == STRING), "") for a, b in spans]
        if name in ("input", "FileInput"):
            self.target(
                spans[:1] if any(self.tokens[i].text == "inplace" for a, b in spans for i in range(a, b)) else []
            )
            return
        arrow = next((i for i, text in enumerate(texts) if text[:1] == ">" or text[:2] == "+<"), -1)
        if arrow >= 0 and name == "open":  # perl
            inside = texts[arrow].lstrip("+<> ")
            inside = "" if texts[arrow].lstrip(">").startswith(":") else inside
            self.write((inside,)) if inside else self.target(spans[arrow + 1 : arrow + 2])
            return
        if self.is_mark(at - 1, ".") and texts[:1] and _is_mode(texts[0]) and not self.of_module(at):
            if _writes(texts[0]):
                self.method(at, "write_text")
            return
        mode = next((text for text in texts[1:] if _is_mode(text)), "r")
        if _writes(mode):
            self.target(spans[:1])
        elif spans:
            self.paths(*spans[0])

    def runs(self, spans: list[tuple[int, int]]) -> None:
        """A command as one text, or as words."""
        words: list[str] = []
        listed = False
        for a, b in spans[:2]:
            listed = listed or self.is_mark(a, "[")
            for at in range(a, b):
                if self.tokens[at].kind == STRING and (self.is_mark(a, "[") or at == a):
                    self.used.add(at)
                    words.append(self.tokens[at].text)
        if listed or len(words) > 1 and " " not in words[0]:
            self.run.call(Call(words[0], [Arg(word, word) for word in words[1:]], self.call.raw)) if words else None
        elif words:
            self.shell(words[0])

    def shell(self, text: str) -> None:
        self.run.apart(lambda: self.run.script(text, self.call.raw))

    # --- answers -----------------------------------------------------------------------------------------------------

    def arg(self, path: str) -> Arg:
        return Arg(path, self.call.raw)

    def target(self, spans: list[tuple[int, int]]) -> None:
        if spans:
            self.write(tuple(path for a, b in spans for path in self.paths(a, b)))

    def write(self, paths: tuple[str, ...]) -> None:
        self.astray = self.astray or not paths
        for path in paths:
            self.run.write(self.arg(path), f"the text of {self.call.name} writes it")

    def left(self) -> list[str]:
        """Files that the text names, and whose part is not known."""
        named = [
            token.text
            for at, token in enumerate(self.tokens)
            if token.kind == STRING and at not in self.used and token.exact
        ]
        bound = [path for name, paths in self.bound.items() if name not in self.seen for path in paths]
        words = [arg.text for arg in self.args if arg.known]
        return [
            name
            for name in dict.fromkeys((*named, *bound, *words, *self.loose))
            if 0 < len(name) < 200 and "\n" not in name and any(map(self.run.fs.exists, self.resolved(name)))
        ]

    def resolved(self, name: str) -> tuple[str, ...]:
        return tuple(join(cwd, name) for cwd in self.run.state.cwds)

    def written_astray(self, named: list[str]) -> None:
        endings = " ".join(
            token.text
            for token in self.tokens
            if token.kind == STRING and token.text[:1] == "." and 1 < len(token.text) < 6
        )
        walks = any(token.kind == NAME and token.text in _WALKS for token in self.tokens)
        for name in named:
            paths = self.resolved(name)
            if not any(map(self.run.fs.is_dir, paths)):
                self.write((name,))
            elif endings or walks:
                for arg in source_files(self.run, self.arg(name), has_ending(endings))[0]:
                    self.run.write(arg, f"the text of {self.call.name} writes it")


_READERS = frozenset(
    """
exists isfile isdir stat getsize getmtime readFileSync readFile existsSync statSync read readlines foreach file_get_contents is_file
require import_module print puts echo log len parse load open_text read_csv read_json file_exists readlink lstatSync basename dirname
""".split()  # noqa: SIM905
)
_COMMON = ("copy", "link", "run", "call", "delete", "remove")  # methods of other things too
_WALKS = ("walk", "listdir", "scandir", "readdirSync", "iterdir", "children", "readdir", "opendir")
_MODULES = ("os", "file", "shutil", "fs", "promises", "File", "FileUtils", "Deno", "Bun", "IO", "fsp", "fse", "subprocess", "child_process", "io", "codecs",
            "gzip", "tarfile", "zipfile")  # fmt: skip


def _is_mode(text: str) -> bool:
    return 0 < len(text) < 5 and all(char in "rwaxbt+Uc" for char in text)


def _writes(mode: str) -> bool:
    return any(char in "wax+c" for char in mode)
