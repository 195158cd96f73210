"""Commands that pack, unpack and fetch: tar, zip, 7z, gzip and its kin, cpio, curl, wget."""

from __future__ import annotations

from gitcoord.base.names import covers
from gitcoord.shell.glob import matches
from gitcoord.shell.interpreter import Call, Run
from gitcoord.shell.options import parse
from gitcoord.shell.paths import base_name
from gitcoord.shell.state import NOT_KNOWN, Arg, Value
from gitcoord.shell.walk import MAX_NAMES, lines_of, listed, source_files

_TAR = "-f -C -T -X -b -I -K -N -V -g --file --directory --files-from --exclude --exclude-from --transform --xform --owner --group --mode --strip-components --strip --use-compress-program --newer --wildcards-match-slash"
_CURL = (
    "-o -A -b -c -C -d -D -e -E -F -H -K -m -P -Q -r -T -u -U -w -x -X -y -Y -z --output --output-dir --data --data-raw --data-binary "
    "--data-urlencode --header --request --user --user-agent --url --form --cookie --cookie-jar --dump-header --upload-file --proxy "
    "--max-time --connect-timeout --retry --write-out --cacert --cert --key --config --resolve --referer --range --trace --stderr "
    "--json --trace-ascii --netrc-file --retry-delay --retry-max-time --limit-rate"
)
_CURL_WRITES = "-o --output -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr"
_WGET = (
    "-O -P -o -a -i -U -t -T -w -Q -l -A -R -D -I -X -e --output-document --directory-prefix --output-file --append-output --input-file "
    "--user-agent --tries --timeout --wait --header --user --password --post-data --post-file --level --accept --reject --body-data"
)
# What each makes of a name, and what it takes away: gzip a -> a.gz.
_ENDINGS = {
    "gzip": ".gz", "pigz": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst", "lzma": ".lzma", "gunzip": ".gz", "bunzip2": ".bz2",
    "unxz": ".xz", "unzstd": ".zst",
}  # fmt: skip


def perform(run: Run, call: Call) -> None:
    {"tar": _tar, "bsdtar": _tar, "gtar": _tar, "unzip": _unzip, "curl": _fetch, "wget": _fetch}.get(
        call.name, _compress
    )(run, call)


def _unpack(run: Run, call: Call, archives: list[Arg], named: list[Arg], places: list[Arg], strip: int = 0) -> None:
    """The files that come out of an archive: those that the command names, or all that a small one has."""
    paths = [path for arg in archives[:1] for path in run.resolve(arg)]
    held = run.fs.members(paths[0]) if len(paths) == 1 and run.is_untouched(paths[0]) else None
    if not archives and call.stdin == "pipe" and not run.feed.below:
        held = lines_of(run.feed)
    names = held or []
    if named:
        wanted = [arg.text.rstrip("/") for arg in named]
        chosen = [name for name in names if any(covers(one, name) or matches(one, name) for one in wanted)]
        names = chosen if held is not None else wanted
    place = places[-1] if places else Arg(".", call.raw)
    for name in names[:MAX_NAMES] if place.known else ():
        parts = name.removeprefix("./").split("/")[strip:]
        if parts:
            run.write(place._replace(text=f"{place.text}/{'/'.join(parts)}", raw=call.raw), f"{call.name} unpacks it")
    if held is None and not named or len(names) > MAX_NAMES or not place.known:
        run.unknown_below(places, call.raw, f"{call.name} unpacks files {'there' if places else 'here'}")


def _tar(run: Run, call: Call) -> None:
    args = [*call.args]
    if args and args[0].known and args[0].text[:1] not in ("-", ""):
        args[0] = args[0]._replace(text="-" + args[0].text)  # the old form: `tar xzf`
    args = _letters_first(args)
    given = parse(args, _TAR)
    archives, base = given.values("-f", "--file"), given.values("-C", "--directory")
    if given.has("--to-command", "--checkpoint-action", "-F", "--info-script", "--new-volume-script"):
        run.unknown(call.raw, "tar runs a command")
    unpacks = given.has("-x", "--extract", "--get")
    if unpacks or given.has("-t", "--list", "-d", "--diff", "--compare"):
        run.read_all(archives, "tar reads it")
        if unpacks and not given.has("-O", "--to-stdout"):
            number = next(
                (arg.text for arg in given.values("--strip-components", "--strip") if arg.text.isdigit()), "0"
            )
            _unpack(run, call, [arg for arg in archives if arg.text != "-"], given.operands, base, int(number[:4]))
    else:
        run.write_all(archives, "tar writes it")
        if not archives or archives[-1].text == "-":  # the names go through the pipe, instead of the files
            run.output = packed(run, given.operands)
        for arg in given.operands:
            whole = arg.known and base and base[-1].known and not arg.text.startswith("/")
            run.read(arg._replace(text=f"{base[-1].text}/{arg.text}") if whole else arg, "tar reads it")
            if given.has("--remove-files"):
                run.delete(arg, "tar --remove-files deletes it")


def packed(run: Run, args: list[Arg]) -> Value:
    """The names of the files that are packed, as the program that unpacks them in the same pipe gets them."""
    names: list[str] = []
    complete = True
    for arg in args:
        files, whole = source_files(run, arg, lambda entry: True)
        names += [one.text for one in files]
        complete = complete and whole and arg.known
    return listed(run, names, complete, run.state.cwds) if names else NOT_KNOWN


def _letters_first(args: list[Arg]) -> list[Arg]:
    """In the old form the values follow the whole bundle: 'xfC a.tar dir' is '-x -f a.tar -C dir'."""
    if not args or args[0].text[:2] in ("--", "-") or len(args[0].text) < 3:
        return args
    found, rest = [], [*args[1:]]
    for letter in args[0].text[1:]:
        found.append(args[0]._replace(text="-" + letter))
        if "-" + letter in _TAR.split() and rest:
            found.append(rest.pop(0))
    return [*found, *rest]


def _unzip(run: Run, call: Call) -> None:
    given = parse(call.args, "-d -x -P")
    run.read_all(given.operands[:1], "unzip reads it")
    if not given.has("-l", "-t", "-p", "-Z", "-v", "-z", "-c"):
        _unpack(run, call, given.operands[:1], given.operands[1:], given.values("-d"))


def _compress(run: Run, call: Call) -> None:
    ending = _ENDINGS[call.name]
    given = parse(call.args, "-S -T -o --suffix --threads" if call.name in ("zstd", "unzstd") else "-S -T -b --suffix")
    unpacks = (
        call.name.startswith("un")
        or call.name in ("gunzip", "bunzip2")
        or given.has("-d", "--decompress", "--uncompress")
    )
    looks = given.has("-c", "--stdout", "--to-stdout", "-t", "--test", "-l", "--list")
    keeps = given.has("-k", "--keep") or call.name in ("zstd", "unzstd") and not given.has("--rm")
    for arg in given.operands:
        if arg.text == "-" or any(map(run.is_dir, run.resolve(arg))):
            continue
        run.read(arg, f"{call.name} reads it")
        if looks:
            continue
        if not arg.known:
            run.unknown_write(arg, f"{call.name} changes it")
            continue
        made = given.values("-o")[-1:] or [
            arg._replace(text=arg.text.removesuffix(ending) if unpacks else arg.text + ending)
        ]
        run.write(made[0], f"{call.name} writes it")
        if not keeps:
            run.delete(arg, f"{call.name} takes it away")


def _fetch(run: Run, call: Call) -> None:
    """curl and wget: the files that their options name, or one by the last part of each address."""
    curl = call.name == "curl"
    given = parse(call.args, _CURL if curl else _WGET)
    place = next((arg.text + "/" for arg in given.values("--output-dir", "-P", "--directory-prefix") if arg.known), "")
    written = given.values(
        *(_CURL_WRITES if curl else "-O -o -a --output-document --output-file --append-output").split()
    )
    run.write_all(
        [arg._replace(text=place * curl + arg.text) for arg in written if arg.text != "-"], f"{call.name} writes it"
    )
    urls = [*given.operands, *given.values("--url")]
    if not curl and given.has("-r", "-m", "-p", "-i", "--recursive", "--mirror", "--page-requisites", "--input-file"):
        run.unknown_below(given.values("-P", "--directory-prefix"), call.raw, "wget writes what it finds there")
    elif (
        given.has("-O", "--remote-name", "--remote-name-all", "-J")
        if curl
        else not given.has("-O", "--output-document", "--spider")
    ):
        for arg in urls:
            name = (
                base_name(arg.text.partition("?")[0].partition("#")[0].partition("://")[2] or arg.text) or "index.html"
            )
            run.write(arg._replace(text=place + name), f"{call.name} writes it")
    reads = given.values("-T", "--upload-file", "-K", "--config", "--netrc-file", "-i", "--input-file", "--post-file")
    run.read_all(reads if curl or not given.has("-O") else [], f"{call.name} reads it")
    local = [arg._replace(text=arg.text[7:]) for arg in urls if arg.text.startswith("file://")]
    sent = [
        value._replace(text=name)
        for option, value in given.options
        if value is not None and (name := _sent(option, value.text))
    ]
    run.read_all([*local, *sent], f"{call.name} sends it")


def _sent(option: str, text: str) -> str:
    """The file whose content an option of curl sends; '' for none."""
    if option in ("-d", "--data", "--data-binary", "--data-ascii", "--json"):
        return text[1:] if text.startswith("@") else ""
    if option in ("-F", "--form"):
        _, _, held = text.partition("=")
        return held[1:].partition(";")[0] if held[:1] in ("@", "<") else ""
    return text.partition("@")[2] if option == "--data-urlencode" and "=" not in text else ""
