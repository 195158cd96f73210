"""A command followed without being run: what it would do to files, along every path that it may take."""

from __future__ import annotations

from gitcoord.shell import bypass
from gitcoord.shell.control_flow import MAX_LOOP, follow, in_subshell, loop
from gitcoord.shell.effect_collector import EffectCollector, TooMuch
from gitcoord.shell.effects import DELETE, WRITE
from gitcoord.shell.expand import expand, expand_all, text_of, value
from gitcoord.shell.paths import join
from gitcoord.shell.state import NOT_KNOWN, Arg, Value, text_in, value_of
from gitcoord.shell.syntax import BROKEN, Assignment, Node, Redirect, Sub
from gitcoord.startup.annotations import Callable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.effect_collector import FileSystem

MAX_STEPS, MAX_DEPTH = 4000, 40


class Call(NamedTuple):
    """One simple command, after expansions."""

    name: str
    args: list[Arg]
    raw: str
    assigns: tuple[Assignment, ...] = ()
    stdin: str = ""  # '' its own, 'pipe', 'file', 'text'
    text: str | None = None  # of stdin; None: not known


class Run(EffectCollector):
    """Follows one command. `state` is the present shell's; `output` is what the last command prints, as far as that is known."""

    def __init__(self, parse: Callable[[str], Node], fs: FileSystem, home: str) -> None:
        super().__init__(fs)
        self.output = NOT_KNOWN
        self.feed = NOT_KNOWN  # what the command before in a pipe prints
        self.line: str | None = None  # what `read` reads in this round of a loop
        self.piped = False
        self.is_used = False  # whether somebody but a reader takes what is printed: else it is not enumerated
        self.pipeline = ""  # the whole of it, as it was written
        self.stdin: tuple[str, str | None] = ("", None)  # of the group around
        self.depth = 0
        self.parse, self.home = parse, home
        self.made: set[str] = set()  # directories that it makes
        self.contents: dict[str, str] = {}  # of files that it writes
        self.in_script = (
            False  # inside a script of the project's own, whose branches depend on more than the command shows
        )
        self.steps = 0

    def words(self, node: Node) -> None:
        """For what runs inside words that are no arguments."""
        for word in node.words:
            if any(isinstance(piece, Sub) for piece in word.pieces):
                expand(self, word)

    def loop_over(self, node: Node) -> None:
        bypass.variable(self, node.name, "")
        for choice in expand_all(self, node.words):
            for arg in choice[:MAX_LOOP]:
                self.state.variables[node.name] = value_of(arg.text) if arg.known else Value((), arg.below)
                if arg.known:
                    for body in node.nodes:
                        follow(self, body)
                else:
                    loop(self, node.nodes)
            if len(choice) > MAX_LOOP:
                self.state.variables[node.name] = NOT_KNOWN
                loop(self, node.nodes)

    def is_dir(self, path: str) -> bool:
        """Return whether it will be there, as far as this command goes."""
        if any(path == one or path.startswith(one + "/") for one in self.gone):
            return False
        return path in self.made or self.fs.is_dir(path)

    def listing(self, path: str) -> tuple[str, ...] | None:
        """The names in a directory, with those that this command makes."""
        names = self.fs.listing(path)
        base = join("/", path) + "/"
        made = [effect.path[len(base) :].partition("/")[0] for effect in self.effects if effect.path.startswith(base)]
        return tuple({*(names or ()), *made}) if names is not None or made else None

    def text_at(self, path: str) -> str | None:
        """The content of a small file, where this command does not change it before."""
        return self.fs.text(path) if self.is_untouched(path) else self.contents.get(path)

    def is_untouched(self, path: str) -> bool:
        return not any(effect.path == path and effect.kind in (WRITE, DELETE) for effect in self.effects)

    def make_directory(self, arg: Arg, detail: str) -> None:
        """One that exists stays as it is, with the files in it."""
        paths = self.resolve(arg)
        if not paths or not all(map(self.is_dir, paths)):
            self.write(arg, detail)
            self.made.update(paths)

    # --- one command -------------------------------------------------------------------------------------------------

    def command(self, node: Node) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooMuch("it has too many steps to be followed")
        self.output = NOT_KNOWN
        stdin = self.redirect(node.redirects)
        self.assign(node.assigns, keep=not node.words)
        if not node.words:
            return
        before, used = self.state, self.is_used
        self.is_used = used or any(one.op in (">", ">|", ">>") for one in node.redirects)
        ends = []
        choices = expand_all(self, node.words)
        for args in choices:
            self.state = before.copy() if len(choices) > 1 else before
            if args:
                self.call(Call(args[0].text, args[1:], node.raw, node.assigns, *stdin), args[0])
            ends.append(self.state)
        self.state, self.is_used = before, used
        if len(ends) > 1:
            self.state.merge(ends)
        self.keep_contents(node.redirects)

    def keep_contents(self, redirects: tuple[Redirect, ...]) -> None:
        """Keep the output of the last command as the content of the file that it goes to: a script may be written, then run."""
        text = text_in(self.output)
        for one in redirects:
            if one.target is not None and one.op in (">", ">|", ">>"):
                for path in self.resolve(Arg(one.target.raw.strip("'\""), one.raw)):
                    self.contents.pop(path, None)
                    if text is not None and one.op != ">>":
                        self.contents[path] = text

    def call(self, call: Call, first: Arg | None = None) -> None:
        """A command whose words are known; wrappers call this for what they wrap."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooMuch("it is nested too deeply")
        if first is not None and not first.known:
            self.unknown(first.raw, "runs a command that cannot be told")
        elif call.name in self.state.functions:
            self.function(call)
        else:
            from gitcoord.shell.commands.dispatch import perform

            perform(self, call)
        self.depth -= 1

    def function(self, call: Call) -> None:
        """A function's body with its arguments; one that calls itself is followed no further."""
        body = self.state.functions.pop(call.name)
        held = {name: value for name, value in self.state.variables.items() if name == "@" or name.isdigit()}
        self.positional(call.args)
        follow(self, body)
        self.state.variables = {k: v for k, v in self.state.variables.items() if k != "@" and not k.isdigit()} | held
        self.state.functions[call.name] = body

    def positional(self, args: list[Arg]) -> None:
        known = all(arg.known for arg in args)
        self.state.variables["@"] = Value((tuple(arg.text for arg in args),)) if known else NOT_KNOWN
        for number, arg in enumerate(args, 1):
            self.state.variables[str(number)] = value_of(arg.text) if arg.known else Value((), arg.below)

    def script(self, text: str, word: str) -> None:
        """A command given as text, run where this one runs."""
        node = self.parse(text)
        if node.kind == BROKEN:
            self.unknown(word, f"a command inside it: {node.name}")
        follow(self, node)

    def text(self, words: list[Arg], name: str) -> None:
        """Words that the program `name` joins and gives to a shell."""
        if words and all(word.known for word in words):
            self.script(" ".join(word.text for word in words), words[0].raw)
        elif words:
            self.unknown(words[0].raw, f"{name} runs a command that cannot be told")

    def apart(self, follow: Callable[[], None]) -> None:
        """Follow something whose directory and variables end with it."""
        outer, self.state = self.state, self.state.copy()
        follow()
        self.state = outer

    def assign(self, assigns: tuple[Assignment, ...], *, keep: bool) -> None:
        for one in assigns:
            bypass.variable(self, one.name, one.value.raw if one.value else "")
            if one.items is not None:
                choices = expand_all(self, one.items)
                known = all(arg.known for choice in choices for arg in choice)
                found = Value(tuple(tuple(a.text for a in choice) for choice in choices)) if known else NOT_KNOWN
            else:
                found = value(self, one.value)
            if one.appends:
                found = _appended(self.state.variables.get(one.name, NOT_KNOWN), found, array=one.items is not None)
            if keep:
                self.state.variables[one.name] = NOT_KNOWN if one.indexed else found

    def substitute(self, sub: Sub) -> Value:
        """The output of a command inside a word, as far as it is known."""
        outer, self.piped, self.is_used = (self.feed, self.piped, self.is_used), False, True
        self.feed = NOT_KNOWN
        in_subshell(self, (sub.body,))
        found, self.output = self.output, NOT_KNOWN
        self.feed, self.piped, self.is_used = outer
        if not sub.body.nodes and not sub.body.words and len(sub.body.redirects) == 1:  # `$(< file)`
            text = self.redirect(sub.body.redirects)[1]
            return value_of(text.rstrip("\n")) if text is not None else NOT_KNOWN
        return found

    def redirect(self, redirects: tuple[Redirect, ...]) -> tuple[str, str | None]:
        """The files of redirections; answers where standard input comes from, and its text where that is known."""
        stdin: tuple[str, str | None] = ("pipe", text_in(self.feed)) if self.piped else self.stdin
        for one in redirects:
            if one.target is None:
                continue
            if one.op in ("<<", "<<<"):
                if one.op == "<<":
                    text = one.target.raw if one.literal else text_of(self, one.target)
                else:
                    choices = expand(self, one.target)
                    text = choices[0][0].text if len(choices) == 1 and choices[0] and choices[0][0].known else None
                stdin = "text", text
                continue
            first = one.target.pieces[0] if one.op == "<" and len(one.target.pieces) == 1 else ""
            if isinstance(first, Sub):  # `< <(command)`
                found = self.substitute(first)
                stdin = "text", text_in(found)
                continue
            for arg in [arg for choice in expand(self, one.target) for arg in choice]:
                named = arg._replace(raw=one.raw)
                if one.op in (">&", "<&") and arg.known and (arg.text.rstrip("-").isdigit() or arg.text == "-"):
                    continue
                if one.op in ("<", "<>", "<&"):
                    self.read(named, "a redirection reads it")
                    paths = self.resolve(named)
                    stdin = "file", self.text_at(paths[0]) if len(paths) == 1 else None
                if one.op not in ("<", "<&"):
                    self.write(named, "a redirection writes it")
        return stdin


def _appended(held: Value, more: Value, *, array: bool) -> Value:
    if len(held.choices) != 1 or len(more.choices) != 1:
        return NOT_KNOWN
    if array:
        return Value((held.choices[0] + more.choices[0],))
    return Value(((*held.choices[0][:-1], (held.choices[0] or ("",))[-1] + more.choices[0][0]),))
