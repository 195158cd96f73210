"""The bundle: made of the sources, and the same as them in every name and every field."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitcoord.hot.bundle import BOOT, GROUPS, HEAD, SHIM, build
from gitcoord.hot.lean import Source
from tests.cli.support import World
from tests.support import ROOT, GitRepo

# Prints every module of gitcoord that is loaded: its names, and the fields and defaults of its named tuples.
_DUMP = """
import json, sys
found = {}
for name, module in sorted(sys.modules.items()):
    if name.split(".")[0] == "gitcoord":
        names = vars(module)
        tuples = {
            key: [list(value._fields), {k: repr(v) for k, v in value._defaults.items()}, [getattr(value, f).__class__.__name__ for f in value._fields]]
            for key, value in names.items() if isinstance(value, type) and hasattr(value, "_fields")
        }
        found[name] = [sorted(key for key in names if key[:2] != "__"), tuples]
print(json.dumps(found))
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """As install.sh makes it: the file, and beside it the command without its last step."""
    place = tmp_path
    (place / "bundle").write_bytes(build(ROOT))
    shim = SHIM.format(bundle=str(place / "bundle"), root=str(ROOT), start=HEAD, python="", program="main")
    (place / "shim").write_text(shim.rpartition("entry()")[0])
    return place


def _run(program: str) -> Any:
    done = subprocess.run([sys.executable, "-IS", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _loaded(bundle: Path, *groups: str) -> dict[str, Any]:
    calls = "".join(f"gitcoord.preload({group!r})\n" for group in groups)
    found: dict[str, Any] = _run((bundle / "shim").read_text() + calls + _DUMP)
    return found


def test_groups_are_what_their_sources_are(bundle: Path, git_repo: GitRepo) -> None:
    """One test for all of it, since making the file takes longer than all the rest."""
    _an_everyday_claim_needs_no_more_than_its_group(bundle, World(Path(git_repo.workspace)).init())
    for group in GROUPS:
        if group not in ("start", "remote"):
            _is_what_its_sources_are(bundle, group)
    assert "gitcoord.app.remote" in _loaded(bundle, "taking", "remote")
    assert "gitcoord.core.shell.run" in _loaded(bundle, "guard", "shell")
    _finds_the_rest_one_by_one(bundle)


def _an_everyday_claim_needs_no_more_than_its_group(bundle: Path, world: World) -> None:
    """Claims and releases follow each other: nothing of the other kind is looked for one by one."""
    program = (bundle / "shim").read_text() + (
        "import sys\nfrom gitcoord.hot.main import main\n"
        "code = main(sys.argv[1:])\nsys.exit(code or 7 * (sys.meta_path[0].table is not None))\n"
    )
    quick = [sys.executable, "-IS", "-c", program]
    world.take("src/a.py")  # which opens a session
    world.free()
    for words in (("src/a.py",), ("src/b.py",), ("release", "src/b.py"), ("release", "src/a.py"), ("src/b.py",)):
        assert world.run(quick, words, "alice").code == 0, words


def _is_what_its_sources_are(bundle: Path, group: str) -> None:
    ours = _loaded(bundle, group)
    names = sorted(ours)
    imports = f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfor name in {names!r}:\n    __import__(name)\n"
    theirs = _run(imports + _DUMP)
    assert len(names) > 20
    later = []
    for name in names:
        # What a package has loaded below itself is among its names; so is what only the bundle adds to the first of them, and
        # modules whose errors are asked for by their full names.
        below = {other.removeprefix(f"{name}.") for other in (*ours, *theirs) if other.startswith(f"{name}.")}
        extra = below | {"preload", "python", "TYPE_CHECKING"} | {own for own in ours[name][0] if "." in own}
        assert not set(ours[name][0]) - extra - set(theirs[name][0]), name
        later += [(name, lacking) for lacking in sorted(set(theirs[name][0]) - extra - set(ours[name][0]))]
        assert ours[name][1] == theirs[name][1], name
    # What is not there yet are errors, of this module or imported: those of its own are made when they are asked for.
    homes = _run(imports + _LINES.format(later=later))
    assert all("Exception" in line for _, _, line in homes)
    own = [(name, lacking) for name, lacking, line in homes if line[0] == f"{name}.{lacking}"]
    program = (bundle / "shim").read_text() + f"gitcoord.preload({group!r})\n" + _LINES.format(later=own)
    assert own and _run(program) == [row for row in homes if (row[0], row[1]) in own]


# Prints from what each of these classes descends.
_LINES = """
import json, sys
rows = []
for module, name in {later!r}:
    line = getattr(sys.modules[module], name).__mro__
    rows.append([module, name, [one.__qualname__ if one.__module__ == "builtins" else one.__module__ + "." + one.__qualname__ for one in line]])
print(json.dumps(rows))
"""


def _finds_the_rest_one_by_one(bundle: Path) -> None:
    program = (bundle / "shim").read_text() + (
        "import json, sys\n"
        "before = sys.meta_path[0].table is None\n"
        "from gitcoord.app.why import why\n"
        "print(json.dumps([before, sys.meta_path[0].table is not None, why.__module__]))\n"
    )
    assert _run(program) == [True, True, "gitcoord.app.why"]


def _source(text: str) -> Source:
    return Source("gitcoord.x", "x.py", text, False)


def _names(code: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"print": None}
    exec(code, names)
    return names


def test_only_imports_of_what_is_there_are_followed_ahead() -> None:
    source = _source(
        "from gitcoord.a import one, two\n"
        "from gitcoord.a import three as drei\n"
        "from gitcoord.later import four\n"
        "from gitcoord import a, later\n"
        "from posix import getpid\n"
        "def f():\n    from gitcoord.a import five\n"
    )
    assert source.needs[:3] == ["gitcoord.a", "gitcoord.a.one", "gitcoord.a.two"]
    modules = {name: Source(name, "x.py", "", False) for name in ("gitcoord", "gitcoord.a", "gitcoord.later")}
    linked = source.linked(["gitcoord", "gitcoord.a"], modules)
    assert linked.links == (("gitcoord.a", ("one", "two")),)
    assert {"three", "four", "later", "getpid"} <= set(linked.code.co_names) and "two" not in linked.code.co_names
    assert "two" in source.whole().co_names


def test_annotations_go_and_values_stay() -> None:
    names = _names(
        _source(
            "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import nowhere\nelse:\n    b = 2\n"
            "a: no.such.name = 1\nc: nothing\n"
            "class C:\n    x: no.such = 3\n    y: nothing\n    def m(self, a: no.such) -> no.such:\n        z: no.such = a\n        return z\n"
        ).whole()
    )
    assert (names["a"], names["b"], names["C"].x, names["C"]().m(5)) == (1, 2, 3, 5)
    assert "c" not in names and not hasattr(names["C"], "y") and "__annotations__" not in names


_ERRORS = """
class Broken(Exception):
    code = 4
class Torn(Broken):
    def words(self):
        return super().__str__()
class Plain:
    pass
def tear():
    raise Torn("torn")
"""


def _group(**texts: str) -> dict[str, Any]:
    """These modules of a package as one group, made as the command makes them: the names of each."""
    texts = {"gitcoord_x": "", **{f"gitcoord_x.{name}": text for name, text in texts.items()}}
    sources = {name: Source(name, "x.py", text, name == "gitcoord_x") for name, text in texts.items()}
    rows = [(n, s.is_package, *s.linked(list(sources)[:i], sources)) for i, (n, s) in enumerate(sources.items())]
    boot: dict[str, Any] = {"groups": {"x": ()}, "root": "", "ready": None}
    exec(BOOT.partition("\nready = ")[0], boot)
    boot["part"] = lambda where: rows
    boot["preload"]("x")
    return {name.rpartition(".")[2]: vars(sys.modules[name]) for name in texts}


@pytest.fixture(autouse=True)
def no_modules_stay() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("gitcoord_x")]:
        del sys.modules[name]


def _call(text: str, **texts: str) -> str:
    """What `f`, of a module that belongs to no group, gives: the name of a class."""
    _group(**texts)
    names: dict[str, Any] = {}
    exec(text, names)
    return str(names["f"]().__name__)


def test_errors_are_made_when_they_are_first_needed() -> None:
    use = (
        "from gitcoord_x.errors import Broken, Plain, Torn, tear\n"
        "def catch():\n    try:\n        tear()\n    except Broken as error:\n        return error, isinstance(error, Torn)\n"
    )
    names = _group(errors=_ERRORS, use=use)
    assert "Torn" not in names["errors"] and "Broken" not in names["errors"] and "Torn" not in names["use"]
    assert names["use"]["Plain"] is names["errors"]["Plain"]
    error, same = names["use"]["catch"]()
    assert same and (error.code, error.words()) == (4, "torn") and type(error) is names["errors"]["Torn"]
    assert type(error).__mro__[1] is names["errors"]["Broken"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("def f(Broken):\n    return Broken\n", "f(1)"),
        ("def f():\n    Broken = 1\n    return Broken\n", "f()"),
        ("def f():\n    from posix import O_WRONLY as Broken\n    return Broken\n", "f()"),
        ("def f():\n    def Broken():\n        return 1\n    return Broken()\n", "f()"),
        ("def f():\n    class Broken:\n        one = 1\n    return Broken.one\n", "f()"),
        ("def f():\n    try:\n        {}[1]\n    except KeyError as Broken:\n        return Broken.args[0]\n", "f()"),
        ("def f():\n    match 1:\n        case Broken:\n            return Broken\n", "f()"),
        ("def f():\n    match {2: 1}:\n        case {**Broken}:\n            return Broken[2]\n", "f()"),
        ("def f():\n    match [1]:\n        case [*Broken]:\n            return Broken[0]\n", "f()"),
        ("def f():\n    return [Broken for Broken in (1,)][0]\n", "f()"),
        ("Broken = 1\n", "Broken"),
        ("def Broken():\n    return 1\n", "Broken()"),
        ("class Broken:\n    one = 1\n", "Broken.one"),
    ],
)
def test_a_name_that_means_something_else_somewhere_is_left_alone(more: str, said: str) -> None:
    names = _group(
        errors=_ERRORS, use="from gitcoord_x.errors import Broken, Torn\n" + more + "def g():\n    return Torn\n"
    )
    assert eval(said, names["use"]) == 1
    assert names["use"]["g"]() is names["errors"]["Torn"]


@pytest.mark.parametrize(
    "text",
    [
        "n = 1\nclass Odd(Exception):\n    code = n\nn = 2\n",
        "n = 1\nclass Odd(Exception):\n    def __init__(self, code=n):\n        self.code = code\nn = 2\nOdd.code = 1\n",
        "class Odd(Exception):\n    code = 1\nclass Odd(Odd):\n    pass\n",
        "class Odd(ValueError, Exception):\n    code = 1\n",
        "class Odd(Exception):\n    if True:\n        code = 1\n",
        "if True:\n    def __getattr__(name):\n        raise AttributeError(name)\nclass Odd(Exception):\n    code = 1\n",
        "def later(name):\n    raise AttributeError(name)\n__getattr__ = later\nclass Odd(Exception):\n    code = 1\n",
        "class Base(Exception):\n    def __init_subclass__(cls):\n        cls.code = 1\nclass Odd(Base):\n    pass\n",
    ],
)
def test_an_error_that_is_not_the_same_whenever_it_is_made_is_made_at_once(text: str) -> None:
    names = _group(odd=text, use="from gitcoord_x.odd import Odd\ndef f():\n    raise Odd()\n")
    assert names["odd"]["Odd"].code == 1
    with pytest.raises(names["odd"]["Odd"]):
        names["use"]["f"]()


def test_a_module_that_finds_names_itself_goes_on_to_do_so() -> None:
    finds = (
        "from gitcoord_x.errors import Broken\nclass Own(Broken):\n    pass\ndef __getattr__(name):\n    return name\n"
        "def f():\n    return Broken\n"
    )
    names = _group(errors=_ERRORS, use=finds)
    assert names["use"]["Own"].__mro__[1] is names["errors"]["Broken"] is names["use"]["f"]()
    assert names["use"]["__getattr__"]("x") == "x"


def test_an_error_can_be_had_from_whoever_imports_it() -> None:
    names = _group(
        errors=_ERRORS,
        use="from gitcoord_x.errors import Broken\n",
        more="from gitcoord_x.use import Broken\ndef f():\n    return Broken\n",
    )
    assert names["more"]["f"]() is names["errors"]["Broken"]
    within = "def f():\n    from gitcoord_x.use import Broken\n    return Broken\n"
    assert _call(within, errors=_ERRORS, use="from gitcoord_x.errors import Broken\n") == "Broken"


def test_errors_of_modules_that_come_later_are_imported_as_ever() -> None:
    late = "from gitcoord_x.later import Odd\ndef f():\n    return Odd\n"
    source = Source("gitcoord_x.a", "x.py", late, False)
    sources = {"gitcoord_x.later": Source("gitcoord_x.later", "x.py", "class Odd(Exception):\n    pass\n", False)}
    linked = source.linked([], sources)
    assert (linked.links, linked.homes, linked.late) == ((), (), {}) and "Odd" in linked.code.co_names
    star = Source("gitcoord_x.a", "x.py", "from gitcoord_x.later import *\n", False)
    assert star.linked(list(sources), sources).links == ()


def test_what_a_module_does_not_have_it_does_not_make() -> None:
    names = _group(errors=_ERRORS)
    with pytest.raises(AttributeError):
        names["errors"]["__getattr__"]("Nothing")
    first = names["errors"]["__getattr__"]("Torn")
    assert names["errors"]["__getattr__"]("Torn") is first  # for a thread that asked at the same time
