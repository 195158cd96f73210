"""Commands that search or change text: sed, awk, perl and ruby in place, patch, grep, jq."""

from __future__ import annotations

from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import Given, is_assignment, parse
from gitcoord.shell.state import NOT_KNOWN, Arg, Value, names_of
from gitcoord.shell.walk import lines_of, listed, name_fits, search, searcher, source_files

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
        "ack": _grep, "perl": _script, "ruby": _script,
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
    for arg in scripts:
        _names_in_sed(run, arg)
    for arg in operands:
        if inplace:
            in_place(run, arg, "sed", suffixes)
    run.read_all(operands if not inplace else (), "sed reads it")


def _names_in_sed(run: Run, script: Arg) -> None:
    """`w file` and `r file`, as commands and as flags of `s`; they go on to the end of the line."""
    for line in script.text.split("\n"):
        for command, tell in (("w", run.write), ("r", run.read)):
            head, found, name = line.partition(f"{command} ")
            if found and (not head or head[-1] in "/|#,;:!$}0123456789gpIi ") and " " not in name.strip():
                tell(
                    script._replace(text=name.strip(" }")),
                    f"sed's '{command}' {'writes' if command == 'w' else 'reads'} it",
                )


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
    from gitcoord.shell.commands.shells import interpreted

    interpreted(
        run,
        call,
        [arg._replace(text="-e") if program and _program_letter(arg.text[1:]) >= 0 else arg for arg in call.args],
    )


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
    from gitcoord.shell.commands.programs import awk

    for arg in programs:
        awk(run, arg)
    files = [arg for arg in operands if not is_assignment(arg.text)]
    if any(arg.text == "inplace" for arg in given.values("-i", "--include")):
        run.write_all(files, "awk -i inplace changes it in place")
    else:
        run.read_all(files, "awk reads it")


def _grep(run: Run, call: Call) -> None:
    given = parse(call.args, _GREP if call.name.endswith("grep") else _RG)
    operands = given.operands
    run.read_all(given.values("-f", "--file"), f"{call.name} -f reads it")
    patterns = given.values("-e", "--regexp")
    listing = call.name != "rg" or not given.has("--files", "--type-list")
    if listing and not given.has("-e", "-f", "--regexp", "--file"):
        patterns, operands = operands[:1], operands[1:]
    deep = not call.name.endswith("grep") or given.has("-r", "-R", "--recursive", "--dereference-recursive")
    run.read_all(operands, f"{call.name} reads it")
    roots = operands
    if call.args and not operands and deep and not (call.stdin == "pipe" and call.name != "grep"):
        roots = [Arg(".", call.args[0].raw)]
        for path in run.state.cwds or ("",):
            run.read(call.args[0]._replace(text=path or "?", known=bool(path)), f"{call.name} reads all below")
    run.output = _grepped(run, call, given, patterns, roots, deep=deep)


def _grepped(run: Run, call: Call, given: Given, patterns: list[Arg], roots: list[Arg], *, deep: bool) -> Value:
    """The output: the names of files, or the lines of its input that it chooses."""
    names = given.has("-l", "-L", "--files-with-matches", "--files-without-match", "--files", "-Z")
    below = tuple(path for arg in roots for path in run.resolve(arg) or arg.below)
    pattern = patterns[0] if len(patterns) == 1 and patterns[0].known else None
    has = searcher(
        pattern.text, fixed=given.has("-F", "--fixed-strings") or call.name == "fgrep",
        basic=call.name == "grep" and not given.has("-E", "-P", "--extended-regexp", "--perl-regexp"),
        folds=given.has("-i", "--ignore-case") or call.name != "grep" and given.has("-S") and pattern.text == pattern.text.lower(),
        words=given.has("-w", "--word-regexp"),
    ) if pattern is not None else None  # fmt: skip
    if not roots:
        lines = lines_of(run.feed)
        if has is None or lines is None or given.has("-c", "-o", "-n", "--count", "--only-matching"):
            return Value((), run.feed.below)
        return names_of([line for line in lines if has(line) != given.has("-v", "--invert-match")], more=run.feed.below)
    if not names or not run.is_used:
        return NOT_KNOWN
    files: list[Arg] = []
    complete = has is not None or given.has("--files")
    wanted = [arg.text for arg in given.values("--include")] + [
        arg.text for arg in given.values("-g", "--glob") if arg.text[:1] != "!"
    ]
    wanted += [f"*.{_TYPES.get(arg.text, arg.text)}" for arg in given.values("-t", "--type")]
    left_out = [arg.text for arg in given.values("--exclude", "--exclude-dir")]
    left_out += [arg.text[1:] for arg in given.values("-g", "--glob") if arg.text[:1] == "!"]
    for arg in roots:
        paths = run.resolve(arg)
        if len(paths) == 1 and not run.fs.is_dir(paths[0]):
            files.append(arg)
        elif deep:
            found, whole = source_files(
                run, arg,
                lambda entry: (not wanted or name_fits(entry.name, wanted))
                and not any(name_fits(part, left_out) for part in entry.name.split("/")),
            )  # fmt: skip
            files += found
            complete = complete and whole and bool(paths)
    if given.has("--files"):
        return listed(run, [arg.text for arg in files], complete, below)
    chosen, all_read = search(run, files, has, lacking=given.has("-L", "--files-without-match")) if has else ([], False)
    spelled = [name.removeprefix("./") for name in chosen] if call.name != "grep" else chosen
    return listed(run, spelled, complete and all_read, below)


_TYPES = {"python": "py", "js": "js", "javascript": "js", "markdown": "md", "rust": "rs", "ruby": "rb"}


def _patch(run: Run, call: Call) -> None:
    given = parse(
        call.args, "-p -i -d -o -r -B -D -F -z -g --strip --input --directory --output --reject-file --fuzz --suffix"
    )
    sources = [*given.values("-i", "--input"), *given.operands[1:2]]
    run.read_all(sources, "patch reads it")
    if given.has("--dry-run", "-C", "--check", "--version"):
        return
    outputs = given.values("-o", "--output") or given.operands[:1]
    run.write_all(outputs, "patch changes it")
    if not outputs:
        strip = next((arg.text for arg in given.values("-p", "--strip") if arg.text.isdigit()), "")
        places = given.values("-d", "--directory")
        patched(run, call, sources, places, strip, "patch changes the files that the patch names")


def patched(run: Run, call: Call, sources: list[Arg], places: list[Arg], strip: str, detail: str) -> None:
    """The files that a patch names, below the last of these places. `strip`: how many directories less; '': whichever is there."""
    paths = [path for arg in sources[:1] for path in run.resolve(arg)]
    text = call.text if not sources else run.text_at(paths[0]) if len(paths) == 1 else None
    if not sources and run.feed.is_patch:
        text, strip = "".join(f"+++ {name}\n" for name in run.feed.choices[0][0].split("\n")), "0"
    names = [line[4:].split("\t")[0].strip() for line in (text or "").split("\n") if line.startswith(("+++ ", "--- "))]
    names += [line.partition(" to ")[2] for line in (text or "").split("\n") if line.startswith("rename to ")]
    for name in dict.fromkeys(names):
        if name == "/dev/null":
            continue
        short = ["/".join(name.split("/")[int(number[:3]) :]) for number in ([strip] if strip else ["0", "1", "9"])]
        short[-1] = short[-1] or name.rpartition("/")[2]
        place = places[-1] if places else Arg(".", call.raw)
        spelled = [place._replace(text=f"{place.text}/{one}", raw=call.raw) for one in short if one]
        there = [arg for arg in spelled if any(map(run.fs.exists, run.resolve(arg)))]
        run.write_all((there or spelled)[:1], f"{call.name} changes it, by the patch")
    if text is None or not names:
        run.unknown_below(places, call.raw, detail)
