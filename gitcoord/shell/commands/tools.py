"""Build tools, package managers and formatters: what of theirs rewrites files that people edit."""

from __future__ import annotations

from gitcoord.shell.commands.builtins import change_directory
from gitcoord.shell.commands.table import FORMATTERS, TABLE, by_options, rewrite_below
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.state import Arg

# Package managers: the verbs that rewrite these files where they run.
_PACKAGES = {
    "npm": ("install i add uninstall remove rm r un update up upgrade dedupe version init pkg", "package.json package-lock.json"),
    "yarn": ("add remove upgrade up install version init", "package.json yarn.lock"),
    "pnpm": ("add install i remove rm update up init", "package.json pnpm-lock.yaml"),
    "bun": ("add install remove update", "package.json bun.lockb"),
    "poetry": ("add remove update lock init version", "pyproject.toml poetry.lock"),
    "uv": ("add remove lock sync init", "pyproject.toml uv.lock"), "pdm": ("add remove update lock init", "pyproject.toml pdm.lock"),
    "rye": ("add remove lock sync init", "pyproject.toml requirements.lock"),
    "pipenv": ("install uninstall update lock", "Pipfile Pipfile.lock"), "cargo": ("add remove rm update init", "Cargo.toml Cargo.lock"),
    "bundle": ("add remove update lock init", "Gemfile Gemfile.lock"), "composer": ("require remove update init", "composer.json composer.lock"),
    "go": ("get", "go.mod go.sum"),
}  # fmt: skip
_UNCHANGED = ("-g", "--global", "--frozen", "--frozen-lockfile", "--locked", "--no-save")  # with these they do not
_RUNS = {"poetry": ("run",), "uv": ("run",), "pipenv": ("run",), "bundle": ("exec",), "pnpm": ("exec", "dlx"), "yarn": ("dlx", "exec", "run"),
         "npm": ("exec", "x"), "pdm": ("run",), "rye": ("run",), "hatch": (), "composer": ("exec",)}  # fmt: skip


_LOOKS = ("-n", "--dry-run", "--just-print", "-v", "-V", "--version", "-h", "--help", "list", "show", "freeze")
_SCRIPTS = frozenset(
    ["run", "run-script", "test", "t", "tst", "start", "build", "bench", "check", "ci", "rebuild", "doc", "nextest"]
)


def perform(run: Run, call: Call) -> None:
    name = call.name
    if name in _PACKAGES:
        run.apart(lambda: _packages(run, call))
    elif name in ("pre-commit", "husky", "lefthook"):
        if any(arg.text == "uninstall" for arg in call.args):
            run.bypass(call.raw, "takes hooks away")
        elif name == "pre-commit" and any(arg.text in ("run", "autoupdate") for arg in call.args):
            run.unknown_here(call.raw, "pre-commit's hooks may rewrite files")
    elif not any(arg.text in _LOOKS for arg in call.args):
        run.build(call.name, name)  # make, cmake, pip, gradle and the rest: see known.py
        by_options(run, call, short=False)


def _packages(run: Run, call: Call) -> None:
    given = parse(
        call.args,
        "-C --prefix --cwd --directory --manifest-path -p --package --features --project --filter -w --workspace",
        mixed=False,
    )
    for arg in given.values("-C", "--prefix", "--cwd", "--directory", "--project"):
        change_directory(run, arg)
    operands = given.operands
    verb = operands[0].text if operands else "install" if call.name == "yarn" else ""
    if verb in _RUNS.get(call.name, ()):
        _inner(run, call, operands[1:])
    elif call.name in ("go", "cargo") and verb in ("fmt", "fix", "generate", "clippy"):
        if verb != "clippy" or any(arg.text == "--fix" for arg in call.args):
            _formats(run, call, verb)
    elif call.name == "go":
        _go(run, call, verb, operands)
    elif verb in FORMATTERS:
        _inner(run, call, operands)
    elif call.name == "bun" and (verb.endswith((".ts", ".js", ".tsx")) or given.has("-e", "--eval")):
        run.unknown(call.raw, "bun runs a program, which may do anything")
    elif verb in _PACKAGES[call.name][0].split():
        _rewrites(run, call, verb)
    elif verb in _SCRIPTS:
        run.build(call.raw, f"{call.name} {verb}")


def _formats(run: Run, call: Call, verb: str) -> None:
    """cargo and go rewrite what lies where they run."""
    if verb in ("fmt", "fix"):
        rewrite_below(run, Arg(".", call.raw), ".rs" if call.name == "cargo" else ".go", f"{call.name} {verb}")
    else:
        run.unknown_here(call.raw, f"{call.name} {verb} rewrites files")


def _inner(run: Run, call: Call, words: list[Arg]) -> None:
    """`uv run <command>`. A script of the project's own settings (`yarn run build`) is a builder."""
    while words and words[0].text.startswith("-"):
        words = words[2:] if words[0].text in ("--with", "-p", "--python", "-c", "--package") else words[1:]
    if not words:
        return
    from gitcoord.shell.commands.dispatch import FAMILY

    name = words[0].text
    scripted = call.name in ("yarn", "pdm", "rye", "npm", "pnpm")
    if not scripted or name in FAMILY or name in TABLE or name.endswith(".py"):
        run.call(call._replace(name="python" if name.endswith(".py") else name, args=words[1:]), words[0])
    else:
        run.build(call.raw, f"{call.name} {name}")


def _rewrites(run: Run, call: Call, verb: str) -> None:
    named = next((arg for arg in call.args if arg.text == verb), None)
    if named is None or any(arg.text in _UNCHANGED for arg in call.args):
        return
    for file in _PACKAGES[call.name][1].split():
        run.write(named._replace(text=file), f"{call.name} {verb} writes it")


_GO_MOD = (["tidy"], ["edit"], ["init"], ["vendor"])


def _go(run: Run, call: Call, verb: str, operands: list[Arg]) -> None:
    words = [arg.text for arg in operands]
    if verb == "get" or verb == "mod" and words[1:2] in _GO_MOD or words[:2] == ["work", "use"]:
        for file in ("go.mod", "go.sum"):
            run.write(operands[0]._replace(text=file), f"go {verb} writes it")
    elif verb in ("build", "test", "run"):
        run.build(call.raw, f"go {verb}")
        profiles = "-o -coverprofile -cpuprofile -memprofile"
        given = parse(operands[1:], f"{profiles} -run -tags -ldflags -count -timeout")
        run.write_all(given.values(*profiles.split()), f"go {verb} writes it")
