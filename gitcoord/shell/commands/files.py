"""Commands that copy, move and make files: cp, mv, ln, install, dd, rsync, compilers and the like."""

from __future__ import annotations

from gitcoord.base.names import covers
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given, parse
from gitcoord.shell.paths import base_name, dir_name, join
from gitcoord.shell.state import Arg, Value

_COPY = "-t -S -g -m -o --target-directory --suffix --group --mode --owner"
_RSYNC = (
    "-e -f -T --rsh --exclude --include --filter --exclude-from --include-from --files-from --backup-dir --chmod --chown "
    "--log-file --out-format --max-size --min-size --bwlimit --timeout --password-file --link-dest --temp-dir --rsync-path --port"
)


def perform(run: Run, call: Call) -> None:
    {"ln": _link, "dd": _dd, "mktemp": _mktemp, "rsync": _rsync, "scp": _rsync}.get(call.name, _copy)(run, call)


def _targets(run: Run, given: Given) -> list[tuple[Arg, Arg]]:
    """(source, the file that it becomes): a directory as the target takes the names of the sources."""
    into = given.values("-t", "--target-directory")
    if not given.operands:
        return []
    sources, target = (given.operands, into[-1]) if into else (given.operands[:-1], given.operands[-1])
    # A directory that is there, or that the command makes, is filled; another name becomes the copy itself, also with a slash behind it.
    fills = bool(into) or len(sources) > 1 or target.known and any(map(run.is_dir, run.resolve(target)))
    if given.has("-T", "--no-target-directory"):
        fills = False
    if given.has("--parents"):
        return [(source, _beneath(target, source)) for source in sources]
    return [(source, below(target, source) if fills else target) for source in sources]


def _beneath(target: Arg, source: Arg) -> Arg:
    """`cp --parents`: the whole path of the source, in the directory."""
    if not target.known or not source.known:
        return below(target, source)
    return target._replace(text=f"{target.text.rstrip('/')}/{source.text.lstrip('/')}")


def below(target: Arg, source: Arg) -> Arg:
    """The file in a directory that has the source's name."""
    if not target.known:
        return target
    if not source.known:
        return target._replace(known=False, below=(target.text,) if target.text.startswith("/") else ())
    return target._replace(text=f"{target.text.rstrip('/')}/{base_name(source.text)}")


def _copy(run: Run, call: Call) -> None:
    given = parse(call.args, _COPY)
    if call.name == "install" and given.has("-d", "--directory"):
        for arg in given.operands:
            run.make_directory(arg, "install makes the directory")
        return
    for source, target in _targets(run, given):
        if call.name == "mv":
            run.delete(source, "mv takes it away")
        else:
            run.read(source, f"{call.name} reads it")
        if not target.known and not target.below and not given.has("-t", "--target-directory"):
            target = target._replace(below=run.resolve(given.operands[-1]))
        run.write(target, f"{call.name} writes it")
        if given.has("-b", "--backup", "-S", "--suffix") and target.known:
            suffix = next((arg.text for arg in given.values("-S", "--suffix")), "~")
            run.write(target._replace(text=target.text + suffix), f"{call.name} keeps a copy there")
        if call.name == "cp" and given.has("-l", "--link", "-s", "--symbolic-link"):
            for path in run.resolve(target):
                run.links.update((path, end) for end in run.resolve(source))


def _link(run: Run, call: Call) -> None:
    """Later writes to the link go to its target."""
    given = parse(call.args, "-t -S --target-directory --suffix")
    pairs = _targets(run, given)
    if len(given.operands) == 1 and not pairs:
        pairs = [(given.operands[0], given.operands[0]._replace(text=base_name(given.operands[0].text)))]
    soft = given.has("-s", "--symbolic")
    for source, target in pairs:
        run.write(target, "ln makes the link")
        for path in run.resolve(target):
            for end in run.resolve(source):
                run.links[path] = join(dir_name(path), source.text) if soft else end


def _dd(run: Run, call: Call) -> None:
    for arg in call.args:
        key, _, name = arg.text.partition("=")
        if key == "of":
            run.write(arg._replace(text=name), "dd writes it")
        elif key == "if":
            run.read(arg._replace(text=name), "dd reads it")


def _mktemp(run: Run, call: Call) -> None:
    """A new file or directory with a name that nobody has: no write of anything that is there."""
    given = parse(call.args, "-p --tmpdir --suffix")
    places = given.values("-p", "--tmpdir")
    if given.operands and not given.has("-t", "-p", "--tmpdir"):
        places = [arg._replace(text=dir_name(arg.text)) for arg in given.operands if arg.known]
    found = tuple(path for place in places for path in run.resolve(place))
    run.output = Value((), found or ("/tmp",))


def _rsync(run: Run, call: Call) -> None:
    given = parse(call.args, _RSYNC if call.name == "rsync" else "-i -F -P -S -c -l -o -J")
    if given.has("-n", "--dry-run", "--list-only") or len(given.operands) < 2:
        return
    *sources, target = given.operands
    for arg in sources:
        if not _is_remote(arg):
            run.read(arg, f"{call.name} reads it")
            if given.has("--remove-source-files"):
                run.delete(arg, "rsync --remove-source-files deletes it")
    if _is_remote(target):
        return
    tops = [run.fs.top(cwd) for cwd in run.state.cwds]
    whole = any(top and covers(path, top) for path in run.resolve(target) for top in tops)
    if call.name == "rsync" and whole and _deletes_all(given):
        run.delete(target, "rsync --delete deletes what the source lacks")
    if call.name == "scp" or not any(source.text.endswith("/") for source in sources):
        run.write_all([path for _, path in _targets(run, given)], f"{call.name} writes it")
    else:
        run.write(target, f"{call.name} writes it and what is below")


def _deletes_all(given: Given) -> bool:
    """Whether rsync deletes in the target whatever the source lacks, git's own directory too."""
    kept = [*given.values("--exclude", "--filter", "-f"), *given.values("--exclude-from")]
    deletes = any(option == "--del" or option.startswith("--delete") for option, _ in given.options)
    return deletes and not any(".git" in arg.text or not arg.known for arg in kept)


def _is_remote(arg: Arg) -> bool:
    """Return whether the path is on another machine: 'host:path', but './a:b' is a file here."""
    head, colon, _ = arg.text.partition(":")
    return bool(colon) and "/" not in head
