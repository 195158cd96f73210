"""The bundle: what the installed commands run from, and the same as the sources in every name and every field."""

from __future__ import annotations

import json
import marshal
import subprocess
import sys
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

import pytest

from gitcoord.startup.bundle import GROUPS, HEAD, PROGRAMS, build, main
from tests.cli.support import World
from tests.support import ROOT

QUICK = [sys.executable, "-IS"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as install.sh makes it."""
    tree = tmp_path_factory.mktemp("tree")
    main(str(ROOT), str(tree))
    return tree


@pytest.fixture(scope="module")
def groups(tree: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = marshal.loads((tree / "gitcoord.bundle").read_bytes()[len(MAGIC_NUMBER) : HEAD])[2]
    return found


def _before_entry(tree: Path) -> str:
    """A program's text without its last line: the command is ready and does nothing yet."""
    return (tree / "git-claim.py").read_text().rpartition("entry()")[0]


def _output(program: str) -> Any:
    done = subprocess.run([*QUICK, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("group", GROUPS)
def test_groups_name_modules_that_exist(groups: dict[str, list[str]], group: str) -> None:
    assert {f"gitcoord.{name}" for name in GROUPS[group].split()} <= set(groups[group])


# Prints every module of gitcoord that is loaded: its names, and the fields and defaults of its named tuples.
_DUMP = """
import json, sys
found = {}
for name, module in sorted(sys.modules.items()):
    if name.split(".")[0] == "gitcoord":
        names = vars(module)
        tuples = {
            key: [list(value._fields), {k: getattr(v, "__name__", repr(v)) for k, v in value._defaults.items()}, [getattr(value, f).__class__.__name__ for f in value._fields]]
            for key, value in names.items() if isinstance(value, type) and hasattr(value, "_fields")
        }
        found[name] = [sorted(key for key in names if key[:2] != "__" and key != "annotations"), tuples]
print(json.dumps(found))
"""


@pytest.mark.parametrize("group", [group for group in GROUPS if group not in ("start", "remote", "shell")])
def test_a_group_is_what_its_sources_are(tree: Path, groups: dict[str, list[str]], group: str) -> None:
    later = {"taking": "remote", "guard": "shell"}.get(group, group)
    ours = _output(_before_entry(tree) + f"gitcoord.preload({group!r})\ngitcoord.preload({later!r})\n" + _DUMP)
    names = [*groups["start"], *groups[group], *groups[later]]
    theirs = _output(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfor n in {names!r}:\n    __import__(n)\n{_DUMP}")
    del theirs["gitcoord"], ours["gitcoord"]  # in which the program leaves something
    assert ours == theirs and len(ours) > 20


def test_every_module_of_the_bundle_can_be_imported(tree: Path) -> None:
    """Also those that are in no group, such as the handlers of rare verbs."""
    modules = marshal.loads((tree / "gitcoord.bundle").read_bytes()[len(MAGIC_NUMBER) : HEAD])[1]
    program = (
        f"import json\nfor name in {sorted(modules)!r}:\n    __import__(name)\nprint(json.dumps(len(sys.modules)))\n"
    )
    assert _output(_before_entry(tree) + program) > len(modules) > 300


def test_everyday_commands_need_no_more_than_their_groups(
    tree: Path, groups: dict[str, list[str]], git_repo: Path
) -> None:
    """Claims and releases follow each other: the ledger's last event is of the other kind."""
    world = World(git_repo, ledger=True)
    program = _before_entry(tree) + (
        "import sys\nfrom gitcoord.cli.entry import main\ncode = main('claim', sys.argv[1:])\n"
        "sys.stderr.write('\\n' + ' '.join(name for name in sys.modules if name.startswith('gitcoord')))\nsys.exit(code)\n"
    )
    world.take("src/a.py")  # which opens a session
    world.free()
    for group, *words in (
        ("taking", "src/a.py"), ("taking", "src/b.py"), ("reading", "list"), ("writing", "release", "src/b.py"),
        ("writing", "release", "src/a.py"), ("taking", "src/b.py"),
    ):  # fmt: skip
        done = world.run([*QUICK, "-c", program], tuple(words), "alice")
        loaded = done.err.rpartition("\n")[2].split()
        assert done.code == 0 and not set(loaded) - {*groups["start"], *groups[group]}, words


def test_the_commands_run_from_the_bundle(tree: Path, world: World) -> None:
    commands = {name: [*QUICK, str(tree / f"{name}.py")] for name in PROGRAMS}
    assert "claimed src/a.py" in world.run(commands["git-claim"], ("src/a.py",), "alice").out
    refused = world.run(commands["git-claim"], ("src/a.py",), "bob")
    assert refused.code == 1 and "alice" in refused.err
    assert "src/a.py" in world.run(commands["git-coord"], ("start",), "alice").out  # most of it is in no group
    assert world.run(commands["git-handoff"], ("list",), "alice").code == 0


# Loads a module that is in no group, and tells whether the bundle is used.
_IS_USED = "import json\nfrom gitcoord.journal.why import why\nprint(json.dumps(hasattr(gitcoord, 'preload')))\n"


@pytest.mark.parametrize(
    ("content", "is_used"),
    [
        (lambda data: data, True),
        (lambda data: b"\0\0\r\n" + data[4:], False),  # made by another Python
        (lambda data: data[:1000], False),
        (lambda data: b"", False),
        (None, False),
    ],
)
def test_a_bundle_that_does_not_fit_is_not_used(tree: Path, tmp_path: Path, content: Any, is_used: bool) -> None:
    file = tmp_path / "bundle"
    if content is not None:
        file.write_bytes(content((tree / "gitcoord.bundle").read_bytes()))
    program = _before_entry(tree).replace(str(tree / "gitcoord.bundle"), str(file))
    assert _output(program + _IS_USED) == is_used


def test_a_traceback_names_file_and_line(tree: Path) -> None:
    program = _before_entry(tree) + "from gitcoord.base.durations import parse_duration\nparse_duration('')\n"
    done = subprocess.run([*QUICK, "-c", program], capture_output=True, text=True, check=False)
    lines = (ROOT / "gitcoord/base/durations.py").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.strip().startswith("raise"))
    assert f'durations.py", line {line}, in parse_duration' in done.stderr


_MODULE = '''"""A docstring."""
from __future__ import annotations
TYPE_CHECKING = False
if TYPE_CHECKING:
    import nowhere
else:
    b = 2
a: no.such.name = 1
c: nothing
class C:
    """Another."""
    x: no.such = 3
    y: nothing
    def m(self, a: no.such, *rest: no.such) -> no.such:
        """A third."""
        z: no.such = a
        assert z != 6, "six"
        return z
'''


def test_annotations_and_docstrings_go_and_the_rest_stays(tmp_path: Path) -> None:
    (tmp_path / "gitcoord").mkdir()
    (tmp_path / "gitcoord/__init__.py").write_text(_MODULE)
    data = build(tmp_path)
    _, size, offset = marshal.loads(data[len(MAGIC_NUMBER) : HEAD])[1]["gitcoord"]
    names: dict[str, Any] = {}
    exec(marshal.loads(data[offset : offset + size]), names)
    assert (names["a"], names["b"], names["C"].x, names["C"]().m(5)) == (1, 2, 3, 5)
    assert not {"c", "__annotations__", "annotations"} & set(names) and not hasattr(names["C"], "y")
    assert names.get("__doc__") is names["C"].__doc__ is names["C"].m.__doc__ is None
    assert names["C"].m.__annotations__ == {}
    with pytest.raises(AssertionError, match="six"):
        names["C"]().m(6)
