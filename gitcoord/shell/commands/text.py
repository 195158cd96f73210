"""Commands that search or change text: sed, awk, perl and ruby in place, patch, grep, jq."""

from __future__ import annotations

from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import is_assignment, parse
from gitcoord.shell.state import NOT_KNOWN, Arg, Value

_GREP = (
    "-e -f -m -A -B -C -d -D --regexp --file --max-count --after-context --before-context --context --include --exclude "
    "--exclude-dir --exclude-from --color --colour --binary-files --label"
)
_RG = (
    "-e -f -g -t -T -m -A -B -C -r -j -E -M --regexp --file --glob --iglob --type --type-not --max-count --after-context "
    "--before-context --context --replace --threads --sort --max-depth --encoding --max-columns --color --colors --engine"
)


def perform(run: Run, call: Call) -> None:
    {
        "sed": _sed, "gsed": _sed, "patch": _patch, "grep": _grep, "egrep": _grep, "fgrep": _grep, "rg": _grep, "ag": _grep,
        "ack": _grep, "jq": _jq, "yq": _jq, "perl": _script, "ruby": _script,
    }.get(call.name, _awk)(run, call)  # fmt: skip


def _sed(run: Run, call: Call) -> None:
    given = parse([_without_suffix(arg)[0] for arg in call.args], "-e -f -l --expression --file --line-length")
    inplace = given.has("-i", "-I", "--in-place")
    suffixes = [suffix for _, suffix in map(_without_suffix, call.args) if suffix]
    suffixes += [arg.text for arg in given.values("--in-place")]
    operands = given.operands
    scripts = given.values("-e", "--expression")
    for arg in given.values("-f", "--file"):
        run.read(arg, "sed -f reads its script")
        run.unknown(arg.raw, "sed runs a script file, which may write")
    if not given.has("-e", "-f", "--expression", "--file"):
        scripts, operands = operands[:1], operands[1:]
        # BSD: `sed -i '' script file`.
        if inplace and scripts and scripts[0].known and scripts[0].text == "" and len(operands) > 1:
            scripts, operands = operands[:1], operands[1:]
    from gitcoord.shell.commands import scripts as reader

    if scripts and all(arg.known for arg in scripts):  # several are one, a line each
        reader.sed(run, scripts[0]._replace(text="\n".join(arg.text for arg in scripts)))
    for arg in operands:
        if inplace:
            in_place(run, arg, "sed", suffixes)
    run.read_all(operands if not inplace else (), "sed reads it")


def in_place(run: Run, arg: Arg, name: str, suffixes: list[str]) -> None:
    """The file itself, and the copy of it that a suffix asks for."""
    run.write(arg, f"{name} -i changes it in place")
    for suffix in suffixes[-1:]:
        place, slash, last = arg.text.rpartition("/")
        copy = suffix.replace("*", last) if "*" in suffix else last + suffix
        if arg.known:
            run.write(arg._replace(text=copy if "/" in copy else place + slash + copy), f"{name} -i keeps a copy there")


def _without_suffix(arg: Arg) -> tuple[Arg, str]:
    """`-i.bak` and `-ni.bak` as `-i` and `-ni`, and the suffix: what follows the letter is no option."""
    if arg.text[:1] != "-" or arg.text[1:2] == "-":
        return arg, ""
    for at, letter in enumerate(arg.text):
        if letter in "iI":
            return arg._replace(text=arg.text[: at + 1]), arg.text[at + 1 :]
        if letter in "efl":
            break
    return arg, ""


def _script(run: Run, call: Call) -> None:
    """perl and ruby: in place they change their operands; whatever else they run can do anything."""
    inplace = program = False
    suffixes: list[str] = []
    rest = [*call.args]
    while rest and rest[0].text.startswith("-") and rest[0].text != "-":
        letters = rest.pop(0).text[1:]
        if letters == "-":
            break
        if letters in ("v", "V", "c", "h", "-version", "-help"):
            return
        suffix = letters.partition("i")[2] if "i" in letters.partition("e")[0].partition("M")[0] else None
        inplace = inplace or suffix is not None
        suffixes += [suffix] if suffix and suffix != "e" else []
        at = _program_letter(letters) if suffix is None else len(letters) - 1 if suffix == "e" else -1
        program = program or at >= 0
        if at == len(letters) - 1 or letters in ("I", "M", "r"):
            rest = rest[1:]
    if inplace and program:
        for arg in rest:
            in_place(run, arg, call.name, suffixes)
        if not rest:
            run.unknown(call.raw, f"{call.name} -i changes files that cannot be told")
        return
    run.read_all(rest if program else (), f"{call.name} reads it")
    run.unknown(call.raw, f"{call.name} runs a program, which may do anything")


def _program_letter(letters: str) -> int:
    """The position of -e in a bundle of letters; -1 if it is not there."""
    for at, letter in enumerate(letters):
        if letter in "eE":
            return at
        if letter not in "pnlaswTWtuUXF0123456789":
            break
    return -1


def _awk(run: Run, call: Call) -> None:
    given = parse(call.args, "-f -F -v -i -e --file --field-separator --assign --include --source", mixed=False)
    operands = given.operands
    programs = given.values("-e", "--source")
    for arg in given.values("-f", "--file"):
        run.read(arg, "awk -f reads its program")
        run.unknown(arg.raw, "awk runs a program file, which may write")
    if not given.has("-f", "--file", "-e", "--source"):
        programs, operands = operands[:1], operands[1:]
    from gitcoord.shell.commands import scripts

    for arg in programs:
        scripts.awk(run, arg)
    files = [arg for arg in operands if not is_assignment(arg.text)]
    if any(arg.text == "inplace" for arg in given.values("-i", "--include")):
        run.write_all(files, "awk -i inplace changes it in place")
    else:
        run.read_all(files, "awk reads it")


def _grep(run: Run, call: Call) -> None:
    given = parse(call.args, _GREP if call.name.endswith("grep") else _RG)
    operands = given.operands
    run.read_all(given.values("-f", "--file"), f"{call.name} -f reads it")
    listing = call.name != "rg" or not given.has("--files", "--type-list")
    if listing and not given.has("-e", "-f", "--regexp", "--file"):
        operands = operands[1:]
    deep = not call.name.endswith("grep") or given.has("-r", "-R", "--recursive", "--dereference-recursive")
    run.read_all(operands, f"{call.name} reads it")
    roots = tuple(path for arg in operands for path in run.resolve(arg))
    if call.args and not operands and deep and not (call.stdin and call.name != "grep"):
        for path in run.state.cwds or ("",):
            run.read(call.args[0]._replace(text=path or "?", known=bool(path)), f"{call.name} reads all below")
        roots = run.state.cwds
    names = given.has("-l", "-L", "--files-with-matches", "--files-without-match", "--files", "-Z")
    run.output = (
        Value((), roots) if names and roots else run.feed._replace(whole=()) if not operands and not deep else NOT_KNOWN
    )


def _jq(run: Run, call: Call) -> None:
    given = parse(call.args, "-f -L --from-file --indent -o --output-format -p --input-format")
    run.read_all(given.values("-f", "--from-file"), f"{call.name} reads its program")
    skip = 0 if given.has("-f", "--from-file") else 1
    if call.name == "yq" and given.operands and given.operands[0].text in ("eval", "e", "eval-all", "ea"):
        skip += 1
    skip += 2 * sum(name in ("--arg", "--argjson", "--slurpfile", "--rawfile") for name, _ in given.options)
    if call.name == "yq" and given.has("-i", "--inplace", "--in-place"):
        run.write_all(given.operands[skip:], "yq -i changes it in place")
    else:
        run.read_all(given.operands[skip:], f"{call.name} reads it")


def _patch(run: Run, call: Call) -> None:
    given = parse(
        call.args, "-p -i -d -o -r -B -D -F -z -g --strip --input --directory --output --reject-file --fuzz --suffix"
    )
    run.read_all([*given.values("-i", "--input"), *given.operands[1:2]], "patch reads it")
    if given.has("--dry-run", "-C", "--check", "--version"):
        return
    outputs = given.values("-o", "--output") or given.operands[:1]
    run.write_all(outputs, "patch changes it")
    if not outputs:
        places = given.values("-d", "--directory")
        run.unknown_below(places, call.raw, "patch changes the files that the patch names")
