"""The hot modules in one file, made at installation: opening forty files takes longer than a claim may.

`--output FILE --root DIR` compiles what lies in DIR/gitcoord (without adapters and what they alone use) into FILE;
`--shim FILE DIR PYTHON PROGRAM` prints the body of a command that loads it and enters `hot/PROGRAM.py`; PYTHON is the
one with all libraries, for the full command line. The sources stay the one implementation: without the file, or with one
of another Python, the same modules are imported in the ordinary way.
"""

import argparse
import marshal
import os
import sys
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path
from typing import Any

from gitcoord.hot.lean import Source

LEFT_OUT = (
    "gitcoord/adapters",
    "gitcoord/hot/bundle.py",
    "gitcoord/hot/lean.py",
    "gitcoord/store/memory.py",
    "gitcoord/store/libgit2.py",
    "gitcoord/store/client.py",
)

HEAD = 16384

EXTENSIONS = ("_json", "zlib", "_sha1", "_sha2", "_sha256", "fcntl")

# What is loaded together, as the modules that lead to the rest. `start` comes before git's children are started, one of
# the others while they get ready, and `remote` on top of those that write, where a remote decides. What a list lacks is
# found one by one; what it has too much costs a little time.
_EVERY = [
    "gitcoord.hot.render",
    "gitcoord.hot.host",
    "gitcoord.hot.verbs",
    "gitcoord.app.context",
    "gitcoord.store.loose",
]
_CHANGING = [
    *_EVERY, "gitcoord.hot.changing", "gitcoord.app.claims", "gitcoord.store.locks", "gitcoord.store.objects",
    "gitcoord.store.queue", "gitcoord.store.durable",
    "gitcoord.core.kinds.claim", "gitcoord.core.kinds.release",  # the ledger's last event is, as a rule, one of them
]  # fmt: skip
GROUPS = {
    "start": ["gitcoord.hot.main"],
    "reading": [*_EVERY, "gitcoord.hot.looking", "gitcoord.app.look", "gitcoord.core.kinds.claim"],
    "gate": [
        *_EVERY,
        "gitcoord.hot.gate",
        "gitcoord.hot.identity",
        "gitcoord.app.gate",
        "gitcoord.app.sessions",
        "gitcoord.core.kinds.claim",
    ],
    "guard": [
        "gitcoord.hot.host",
        "gitcoord.app.context",
        "gitcoord.store.loose",
        "gitcoord.hot.guarding",
        "gitcoord.app.validators",
        "gitcoord.core.kinds.claim",
    ],
    "receive": [
        "gitcoord.hot.host",
        "gitcoord.app.context",
        "gitcoord.store.loose",
        "gitcoord.hot.receive",
        "gitcoord.app.receive",
        "gitcoord.app.accounts",
        "gitcoord.store.inflight",
        "gitcoord.core.kinds.claim",
        "gitcoord.core.recalled",
    ],
    "shell": [
        "gitcoord.hot.bash",
        "gitcoord.hot.bashtree",
        "gitcoord.core.shell.commands.dispatch",
        "gitcoord.core.shell.commands.builtins",
        "gitcoord.core.shell.commands.text",
    ],
    "remote": ["gitcoord.app.remote"],
    "taking": [*_CHANGING, "gitcoord.core.asking", "gitcoord.app.restrict"],
    "writing": [*_CHANGING, "gitcoord.app.facts", "gitcoord.app.workfacts"],
}

# Runs inside the command, before anything else of gitcoord. Modules of a group are made without the import system, whose
# search costs more than most of these modules; what they import of each other is handed to them, since a statement that finds
# its module there already still raises and drops two errors within Python. Errors of gitcoord's own are made when somebody
# asks a module for them: it has their code, or the name of the module that has it. The table of all modules is read only where
# one is asked for that no group has.
BOOT = """
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader
from marshal import loads
from posix import pread, stat

def part(where):
    return loads(pread(fd, where[1], start + where[0]))

def place(name):
    return [root + "/" + name.replace(".", "/")]

class Bundle:
    table = None

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("gitcoord"):
            return self.find_extension(name)
        if self.table is None:
            self.table = part(modules)
        found = self.table.get(name)
        if found is None:
            return None
        spec = ModuleSpec(name, self, is_package=found[0])
        if found[0]:
            spec.submodule_search_locations = place(name)
        return spec

    def find_extension(self, name):
        file = extensions.get(name)
        if file is None:
            return None
        try:
            stat(file)
        except OSError:
            return None
        return ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(part(self.table[module.__spec__.name][1]), module.__dict__)

def maker(names, late):
    def make(name):
        if name not in late:
            raise AttributeError(name)
        if late[name] in sys.modules:
            return getattr(sys.modules[late[name]], name)
        made = {}
        exec(loads(late[name]), names, made)
        return names.setdefault(name, made[name])

    return make

def preload(group):
    make, known = type(sys), sys.modules
    for name, is_package, links, homes, late, code in part(groups[group]):
        if name in known:
            continue
        known[name] = module = make(name)
        names = module.__dict__
        names["__spec__"] = ready
        if is_package:
            names["__path__"] = place(name)
        parent, _, child = name.rpartition(".")
        if parent:
            known[parent].__dict__[child] = module
        for source, wanted in links:
            there = known[source]
            for one in wanted:
                names[one] = getattr(there, one)
        for home in homes:
            names[home] = known[home]
        if late:
            names["__getattr__"] = maker(names, late)
        exec(code, names)

ready = ModuleSpec("gitcoord", None)
sys.meta_path.insert(0, Bundle())
preload("start")
sys.modules["gitcoord"].preload = preload
"""

# With GITCOORD_TRACE the sources are used, so that a traceback has line numbers.
SHIM = """
import gc
gc.disable()
import posix, sys
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
sys.path.insert(0, {root!r})
try:
    fd = posix.open({bundle!r}, posix.O_RDONLY | posix.O_CLOEXEC)
    data = posix.read(fd, {start})
    if data[:16] == MAGIC_NUMBER.ljust(16, b"\\0") and b"GITCOORD_TRACE" not in posix.environ:
        boot, index = loads(data[16:])
        exec(boot, {{"fd": fd, "start": {start}, "root": {root!r}, **index}})
except (OSError, EOFError, ValueError, TypeError):
    pass
import gitcoord
gitcoord.python = {python!r}
from gitcoord.hot.{program} import entry
entry()
"""


def build(root: Path) -> bytes:
    """The bundle's bytes: Python's magic number, boot code and index (all in the first `HEAD` bytes), then the parts."""
    sources = {source.name: source for source in _sources(root)}
    parts: list[bytes] = []

    def add(value: Any) -> tuple[int, int]:
        """Put a part at the end: (offset, size)."""
        parts.append(marshal.dumps(value))
        return sum(map(len, parts[:-1])), len(parts[-1])

    def linked(names: list[str], there: list[str]) -> tuple[int, int]:
        """The modules of a group, to be made after those that are there."""
        rows, there = [], [*there]
        for name in names:
            rows.append((name, sources[name].is_package, *sources[name].linked(there, sources)))
            there.append(name)
        return add(rows)

    first = _order(GROUPS["start"], sources)
    groups = {"start": linked(first, [])}
    for group, leaders in GROUPS.items():
        if group != "start":
            there = [*first, *(_order(GROUPS["taking"], sources) if group == "remote" else ())]
            groups[group] = linked([name for name in _order(leaders, sources) if name not in there], there)
    modules = add({name: (source.is_package, add(source.whole())) for name, source in sources.items()})
    boot = compile(BOOT, "<gitcoord>", "exec", dont_inherit=True, optimize=2)
    index = {"modules": modules, "groups": groups, "extensions": _extensions()}
    head = MAGIC_NUMBER.ljust(16, b"\0") + marshal.dumps((boot, index))
    assert len(head) <= HEAD, "the index outgrew its place"
    return head.ljust(HEAD, b"\0") + b"".join(parts)


def _sources(root: Path) -> Iterator[Source]:
    for path in sorted((root / "gitcoord").rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if not file.startswith(LEFT_OUT):
            names = file.removesuffix(".py").split("/")
            is_package = names[-1] == "__init__"
            yield Source(".".join(names[:-1] if is_package else names), str(path), path.read_text(), is_package)


def _extensions() -> dict[str, str]:
    """Where this Python keeps the C modules that it was not built with: looking for them lists whole directories."""
    found = ((name, find_spec(name)) for name in EXTENSIONS)
    return {name: spec.origin for name, spec in found if spec and spec.origin and spec.has_location}


def _order(leaders: list[str], sources: dict[str, Source]) -> list[str]:
    """Leaders and all they need, each after what it needs."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in sources or name in order:
            return
        if "." in name:
            visit(name.rpartition(".")[0])
        for needed in sources[name].needs:
            # What a package imports from below itself is found when its own code runs.
            if needed != name and not needed.startswith(name + "."):
                visit(needed)
        if name not in order:
            order.append(name)

    for leader in leaders:
        visit(leader)
    return order


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gitcoord.hot.bundle", description="Build the bundle of the hot modules.")
    parser.add_argument("--output", metavar="FILE")
    parser.add_argument("--root", metavar="DIR")
    parser.add_argument("--shim", nargs=4, metavar=("FILE", "DIR", "PYTHON", "PROGRAM"))
    given = parser.parse_args(words)
    if given.output and given.root:
        temporary = Path(f"{given.output}.{os.getpid()}.tmp")
        temporary.write_bytes(build(Path(given.root)))
        temporary.replace(given.output)
    if given.shim:
        bundle, root, python, program = given.shim
        print(SHIM.format(bundle=bundle, root=root, start=HEAD, python=python, program=program).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
