"""find, fd and ls: which files they find, what they run on them, and which names they print."""

from __future__ import annotations

from gitcoord.shell.glob import matches
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.paths import base_name, in_git_dir
from gitcoord.shell.state import Arg, Value, fill
from gitcoord.shell.walk import MAX_NAMES, FoundFile, has_ending, listed, searcher, source_files, walk
from gitcoord.startup.annotations import Callable

Test = Callable[
    [FoundFile, bool], "bool | None"
]  # None: it cannot be told; False as the second: whether it is asked at all cannot

MAX_EACH = 64  # files on which a command is followed one by one
_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_TO_FILE = ("-fprint", "-fprint0", "-fprintf", "-fls")
_PRINTS = ("-print", "-print0", "-printf", "-ls")
_WITH_VALUE = frozenset(
    """
-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -xtype -size -mtime -mmin -ctime -cmin -atime -amin -newer
-maxdepth -mindepth -perm -user -group -uid -gid -fstype -inum -links -samefile -printf -fprint -fprint0 -fprintf -fls -regextype -lname
-used -newermt -newermm -anewer -cnewer -context
""".split()  # noqa: SIM905
)
_ALWAYS = frozenset(
    """
-depth -d -xdev -mount -follow -noleaf -true -daystart -ignore_readdir_race -regextype -maxdepth -mindepth -readable -writable -quit
-warn -nowarn -H -L -P
""".split()  # noqa: SIM905
)
_UNITS = {"c": 1, "w": 2, "b": 512, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def perform(run: Run, call: Call) -> None:
    {"ls": _ls, "find": _find}.get(call.name, _fd)(run, call)


def _ls(run: Run, call: Call) -> None:
    """Its operands as they are spelled; of a directory the bare names in it."""
    given = parse(call.args, "-I -w -T --ignore --color --hide")
    hidden, itself = given.has("-a", "-A", "--all", "--almost-all"), given.has("-d", "--directory")
    names: list[str] = []
    complete = not given.has("-l", "-R", "-s", "-i", "-F", "-p", "--recursive")
    for arg in given.operands or [Arg(".", ".")]:
        paths = run.resolve(arg)
        if len(paths) != 1:
            complete = False
        elif itself or not run.fs.is_dir(paths[0]):
            names.append(arg.text)
        else:
            names += [name for name in sorted(run.listing(paths[0]) or ()) if hidden or name[0] != "."]
    roots = tuple(path for arg in given.operands for path in run.resolve(arg) or arg.below)
    run.output = listed(run, names if complete else [], complete, tuple(dict.fromkeys((*run.state.cwds, *roots))))


def _find(run: Run, call: Call) -> None:
    args = call.args
    at = 0
    while at < len(args) and args[at].text in ("-H", "-L", "-P"):
        at += 1
    start = at
    while at < len(args) and not args[at].text.startswith(("-", "(", "!")):
        at += 1
    roots = args[start:at] or [Arg(".", ".")]
    below = tuple(dict.fromkeys(path for root in roots for path in run.resolve(root) or root.below))
    search = _Search(run, args[at:])
    if not run.is_used and all(word in _PRINTS for word, _, _ in search.actions):
        return
    search.go(roots)
    printed = Value()
    for word, values, entries in search.actions:
        names = [entry.name for entry in entries[:MAX_NAMES]]
        search.complete = search.complete and len(entries) <= MAX_NAMES
        if word in _PRINTS:
            printed = listed(run, names, search.complete, below) if word != "-ls" else Value((), below)
        elif word in _TO_FILE:
            run.write_all(values[:1], f"find {word} writes it")
        elif word == "-delete":
            on_each(run, call, [Arg("rm", call.raw)], names, () if search.complete else below or ("",))
        else:
            on_each(run, call, values, names, () if search.complete else below or ("",), singly=word == ";")
            if run.output.choices and not printed.choices:
                printed = run.output
    run.output = printed


class _Search:
    """The tests of a find as one question about a file, and the files that reach each of its actions."""

    def __init__(self, run: Run, words: list[Arg]) -> None:
        self.run, self.words, self.at = run, words, 0
        self.least, self.most = 0, 1000
        self.complete = all(word.known for word in words)
        self.prunes = False
        self.actions: list[tuple[str, list[Arg], list[FoundFile]]] = []
        self.test = self.either()
        while self.at < len(words):  # a bracket too many
            self.at += 1
            self.complete = False
        if not self.actions:
            self.test = _both(self.test, self.action("-print", []))

    def go(self, roots: list[Arg]) -> None:
        for root in roots:
            paths = self.run.resolve(root)
            self.complete = self.complete and bool(paths) and not any(map(in_git_dir, paths))
            for path in paths:
                files = walk(self.run.fs, root.text, path, self.visit)
                self.complete = self.complete and files.complete

    def visit(self, entry: FoundFile) -> bool:
        self.prunes = False
        if entry.depth >= self.least:
            self.test(entry, True)
        return entry.depth < self.most and not self.prunes

    def word(self) -> str:
        return self.words[self.at].text if self.at < len(self.words) else ""

    def either(self) -> Test:
        found = self.all()
        while self.word() in ("-o", "-or", ","):
            self.at += 1
            found = _either(found, self.all())
        return found

    def all(self) -> Test:
        found: Test = lambda entry, sure: True  # noqa: E731
        while self.word() not in ("", "-o", "-or", ",", ")"):
            found = _both(found, self.one())
        return found

    def one(self) -> Test:
        word = self.word()
        self.at += 1
        if word in ("!", "-not"):
            held = self.one() if self.word() not in ("", ")") else _never
            return lambda entry, sure: None if (fits := held(entry, sure)) is None else not fits
        if word == "(":
            held = self.either()
            self.at += 1
            return held
        if word in ("-a", "-and"):
            return lambda entry, sure: True
        if word in _RUNS:
            start = self.at
            while self.word() not in ("", ";", "+"):
                self.at += 1
            self.at += 1
            together = self.words[self.at - 1 : self.at]
            return self.action("+" if together and together[0].text == "+" else ";", self.words[start : self.at - 1])
        value = ""
        if word in _WITH_VALUE:
            value = self.word()
            self.at += 1
        if word in ("-delete", *_PRINTS, *_TO_FILE):
            self.at += word == "-fprintf"
            return self.action(word, self.words[self.at - 1 - (word == "-fprintf") : self.at])
        if word == "-prune":
            return self.prune
        if word in ("-maxdepth", "-mindepth") and value.isdigit() and len(value) < 6:
            self.most, self.least = (int(value), self.least) if word == "-maxdepth" else (self.most, int(value))
        return self.plain(word, value)

    def prune(self, entry: FoundFile, sure: bool) -> bool:
        self.prunes = True
        return True

    def action(self, word: str, values: list[Arg]) -> Test:
        reached: list[FoundFile] = []
        self.actions.append((word, values, reached))

        def reach(entry: FoundFile, sure: bool) -> bool:
            self.complete = self.complete and sure
            if sure:
                reached.append(entry)
            return True

        return reach

    def plain(self, word: str, value: str) -> Test:
        """A test of the name, kind, size or age."""
        kind = word.removeprefix("-i") if word.startswith(("-iname", "-ipath", "-iwhole")) else word[1:]
        fold = str.lower if word.startswith("-i") else str
        if kind == "name":
            return lambda entry, sure: matches(fold(value), fold(base_name(entry.name) or entry.name))
        if kind in ("path", "wholename"):
            return lambda entry, sure: matches(fold(value), fold(entry.name))
        if word in ("-regex", "-iregex"):
            has = searcher(f"^{value}$", fixed=False, basic=True, folds=word == "-iregex", words=False)
            return lambda entry, sure: has(entry.name) if has is not None else None
        if word in ("-type", "-xtype"):
            return lambda entry, sure: self.run.fs.kind(entry.path) in value.split(",")
        if word in ("-size", "-empty"):
            return lambda entry, sure: self.by_look(word, value, entry)
        return lambda entry, sure: True if word in _ALWAYS else False if word == "-false" else None

    def by_look(self, word: str, value: str, entry: FoundFile) -> bool | None:
        """-size and -empty. Of an age nothing is said: it is another when the command runs."""
        look = self.run.fs.look(entry.path)
        if word == "-empty" and look is not None:  # empty directories of git are no part of what it is meant for
            empty = self.run.fs.listing(entry.path) == () if entry.is_dir else look.st_size == 0
            return empty and not in_git_dir(entry.path)
        number = value.lstrip("+-").rstrip("cwbkMG")
        if look is None or not number.isdigit() or len(number) > 9:
            return None
        size = -(-look.st_size // _UNITS.get(value[-1:], 512))
        return size > int(number) if value[0] == "+" else size < int(number) if value[0] == "-" else size == int(number)


def _never(entry: FoundFile, sure: bool) -> bool:
    return False


def _both(left: Test, right: Test) -> Test:
    def test(entry: FoundFile, sure: bool) -> bool | None:
        first = left(entry, sure)
        if first is False:
            return False
        second = right(entry, sure and first is True)
        return second if first or second is False else None

    return test


def _either(left: Test, right: Test) -> Test:
    def test(entry: FoundFile, sure: bool) -> bool | None:
        first = left(entry, sure)
        if first:
            return True
        second = right(entry, sure and first is False)
        return second if first is False or second else None

    return test


def on_each(
    run: Run,
    call: Call,
    words: list[Arg],
    names: list[str],
    more: tuple[str, ...],
    place: str = "{}",
    *,
    singly: bool = False,
) -> None:
    """A command that is run on these files, in the place of `place` or behind its words. `more`: on others below these too.

    `singly`: once for each.
    """
    if not words:
        return
    files = [Arg(name, name) for name in names] + [
        Arg("", call.raw, known=False, below=(path,) if path else ()) for path in more
    ]
    if not any(place and place in word.text for word in words):
        words, place = [*words, Arg("\0", call.raw)], "\0"
    if all(word.text == place or place not in word.text for word in words) and not (singly and len(files) <= MAX_EACH):
        rounds = [[one for word in words for one in (files if word.text == place else [word])]] if files else []
    else:
        rounds = [[fill(word, place, file) for word in words] for file in files[:MAX_EACH]]
        if len(files) > MAX_EACH:
            run.unknown(call.raw, "it is run on more files than are followed")
    for filled in rounds:
        run.call(call._replace(name=filled[0].text, args=filled[1:], stdin="", text=None), filled[0])


def _fd(run: Run, call: Call) -> None:
    """As find: a pattern of the name, and endings."""
    at = next(
        (i for i, arg in enumerate(call.args) if arg.text in ("-x", "-X", "--exec", "--exec-batch")), len(call.args)
    )
    given = parse(
        call.args[:at], "-e -t -d -E -S -c -j --extension --type --max-depth --exclude --size --changed-within --color"
    )
    roots = given.operands[1:] or [Arg(".", ".")]
    below = tuple(path for root in roots for path in run.resolve(root) or root.below)
    pattern = given.operands[0].text if given.operands else ""
    endings = " ".join(f".{arg.text}" for arg in given.values("-e", "--extension"))
    has = searcher(pattern, fixed=given.has("-F"), basic=False, folds=pattern == pattern.lower(), words=False)
    odd = has is None or given.has("-g", "-S", "-d", "-E", "-H", "-u", "--glob", "--hidden")
    found = [
        source_files(run, root, lambda e: has_ending(endings)(e) and bool(has and has(base_name(e.name))))
        for root in roots
    ]
    names = [arg.text.removeprefix("./") for files, _ in found for arg in files] if not odd else []
    complete = not odd and all(whole for _, whole in found) and all(map(run.resolve, roots))
    words = call.args[at + 1 :]
    on_each(run, call, words, names, () if complete else below or ("",))
    run.output = listed(run, names, complete, below)
