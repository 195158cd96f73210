"""Commands that a row can describe: which options take values, which of these are files, what the operands are."""

from __future__ import annotations

from gitcoord.shell import glob
from gitcoord.shell.options import Given, parse
from gitcoord.shell.state import Arg, Value, value_of
from gitcoord.shell.walk import has_ending, source_files
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Call, Run

# What is done to an operand: written, deleted, read, made as a directory, nothing.
W, D, R, M, N = "w", "d", "r", "m", "n"
LAST = "l"  # the last one is written


class Row(NamedTuple):
    operands: str  # one letter each, the last for all that follow
    valued: str = ""  # options with a value
    writes: str = ""  # those of them whose value is a file that is written
    reads: str = ""
    harmless: str = ""  # with one of these words it does nothing
    changes: str = ""  # with one of these words it rewrites its operands; '*': always
    endings: str | None = None  # of the files that it takes below a directory; None: it takes no directory
    here: bool = False  # without operands it takes the current directory
    verbs: str = ""  # words before the operands


_PAGE = "-l -r -H --language --line-range --style --theme --color --paging"
TABLE: dict[str, Row] = {
    "tee": Row(W),
    "zip": Row("wr", "-i -x -n -t -P -b"),
    "mkdir": Row(M, "-m --mode -Z --context"),
    "uniq": Row("rwn", "-f -s -w --skip-fields --skip-chars --check-chars"),
    "openssl": Row(N, "-out -keyout -in -inkey", "-out -keyout", "-in -inkey"),
    "shred": Row(W, "-n -s --iterations --size --random-source"),
    "touch": Row(W, "-d -r -t --date --reference --time"),
    "truncate": Row(W, "-s -r --size --reference"),
    "mkfifo": Row(W, "-m --mode"),
    "mknod": Row("wn", "-m --mode"),
    "chmod": Row("nw", "--reference"),
    "chown": Row("nw", "--reference --from"),
    "setfacl": Row(W, "-m -M -x -X --modify --remove --set"),
    "xattr": Row("nnw"),
    "fallocate": Row(W, "-l -o -n --length --offset"),
    "sd": Row("nnw", "-n -f"),
    "rpl": Row("nnw", "-x"),
    "indent": Row("wn", "-o", "-o"),
    "sort": Row(R, "-o -k -t -S -T --output --key --field-separator --buffer-size --temporary-directory", "-o --output"),
    "shuf": Row(R, "-o -n -i --output --head-count --input-range --random-source", "-o --output"),
    "iconv": Row(R, "-o -f -t --output --from-code --to-code", "-o --output"),
    "pandoc": Row(R, "-o -f -t -s --output --from --to --template --css -V --metadata", "-o --output", "--template --css"),
    "xmllint": Row(R, "--output -o --xpath --schema --encode", "--output -o", "--schema"),
    "xsltproc": Row(R, "-o --output --stringparam", "-o --output"),
    "dot": Row(R, "-o -T -K", "-o"),
    "objcopy": Row("rw", "-O -I -j -R"),
    "bison": Row(R, "-o --output", "-o --output"),
    "flex": Row(R, "-o", "-o"),
    "m4": Row(R, "-o -D -I", ""),
    "ssh-keygen": Row(N, "-f -t -b -C -N -P", "-f", "", "-l -y -F"),
    "gpg": Row(R, "-o -u -r --output --recipient --local-user", "-o --output"),
    "base64": Row(R, "-w -i -o --wrap", "-o", "-i"),
    "column": Row(R, "-t -s -o -c -N"),
    "vi": Row(W, "-c -S -u"), "vim": Row(W, "-c -S -u --cmd"), "nvim": Row(W, "-c -S -u -l --cmd"), "ex": Row(W, "-c"),
    "emacs": Row(W, "-l -f --eval --load --funcall"), "ed": Row(W, "-p"),
    "head": Row(R, "-n -c --lines --bytes"), "tail": Row(R, "-n -c -s --lines --bytes --pid --sleep-interval"),
    "less": Row(R, "-p -o -O --log-file", "-o -O --log-file"),
    "bat": Row(R, _PAGE), "batcat": Row(R, _PAGE),
    "nl": Row(R, "-b -w -s -v -n"), "fold": Row(R, "-w"), "fmt": Row(R, "-w"), "expand": Row(R, "-t"), "unexpand": Row(R, "-t"),
    "pr": Row(R, "-l -w -h"), "cut": Row(R, "-d -f -c -b --delimiter --fields --characters --bytes --output-delimiter"),
    "paste": Row(R, "-d"), "join": Row(R, "-t -1 -2 -o -a -j"), "wc": Row(R, "--files0-from"),
    "diff": Row(R, "-U -C -x -I --label --exclude --color"), "sdiff": Row(R, "-o -w", "-o"), "colordiff": Row(R, "-U -C -x"),
    "cmp": Row(R, "-n -i"), "file": Row(R, "-m -f"), "strings": Row(R, "-n -t -e"), "od": Row(R, "-A -t -N -j -w"),
    "xxd": Row("rw", "-l -s -c -g"), "hexdump": Row(R, "-n -s -e -C"), "hd": Row(R, "-n -s"), "base32": Row(R, "-w"), "shasum": Row(R, "-a"),
    "zgrep": Row("nr", "-e -f"), "bzgrep": Row("nr", "-e -f"), "xzgrep": Row("nr", "-e -f"), "csvcut": Row(R, "-c"),
    "csvgrep": Row(R, "-c -m"), "pygmentize": Row(R, "-l -f -o -O", "-o"),
    "yq": Row("nr", "-f -o --output-format -p --input-format --indent", "", "-f", "", "-i --inplace --in-place", verbs="eval e eval-all ea"),
    "jq": Row("nr", "-f -L --from-file --indent", "", "-f --from-file"),
    "sqlite3": Row("wn", "-cmd -init -separator -nullvalue", "", "", "-readonly"),
    "patchelf": Row(W, "--set-rpath --set-interpreter --output", "--output"),
    "strip": Row(W, "-o", "-o"),
    "perltidy": Row(R, "-o -pro", "-o", "", "", "-b"),
    "tidy": Row(R, "-o -f -config", "-o -f", "", "", "-m -modify"),
    "ctags": Row(R, "-f -o", "-f -o"), "bandit": Row(R, "-o -f -c", "-o"), "semgrep": Row(R, "-o --config --output", "-o --output", "", "", "--autofix", ""),
}  # fmt: skip
_CC = "-o -I -L -l -D -U -include -isystem -x -std -MF -MT -MQ -Xlinker -Xpreprocessor -T -u -arch -framework -target"
TABLE.update(dict.fromkeys("gcc g++ cc c++ clang clang++".split(), Row(N, _CC, "-o")))  # noqa: SIM905
TABLE.update(dict.fromkeys("convert magick ffmpeg".split(), Row(LAST, "-i -f -c -vf -r", "", "-i")))  # noqa: SIM905
TABLE.update(dict.fromkeys("rm rmdir unlink srm trash".split(), Row(D)))  # noqa: SIM905
TABLE.update(dict.fromkeys("sponge nano pico red vimdiff visudo vipw".split(), Row(W)))  # noqa: SIM905
TABLE.update(dict.fromkeys("chgrp chattr chflags rename prename link".split(), Row("nw")))  # noqa: SIM905
TABLE.update(dict.fromkeys(
    """
cat code tac more most view rev comm diff3 delta md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5
zcat bzcat xzcat zstdcat gzcat zless zmore tsort csvlook csvstat glow mdcat
""".split(), Row(R)))  # noqa: SIM905  # fmt: skip
TABLE.update(dict.fromkeys("look xq xsv".split(), Row("nr")))  # noqa: SIM905

# Formatters: the words with which they rewrite ('*': always), the endings of what they take below a directory, and the words with
# which they only look.
_PY, _JS, _CSS, _YAML = ".py .pyi", ".js .jsx .ts .tsx .mjs .cjs .vue", ".css .scss .sass .less", ".yml .yaml"
_WEB = f"{_JS} {_CSS} {_YAML} .json .md .html .graphql"
_VALUED = (
    "-c --config --config-file -l --line-length --line-width -s --settings -p --profile --parser --plugin --ext --ignore-path -t -e "
    "--target-version --select --ignore --extend-select --extend-ignore --exclude --style -rules --rules --rule --edition "
    "--max-warnings --format --output-format --include --cache-dir --log-level --only --dialect -d -L --ignore-words --skip"
)
_CHECKS = "--check --diff --check-only --dry-run --fix-dry-run --verify-no-changes --version --help --lint --dryrun --list-different"
_FORMATTERS = {
    "black blue darker": ("*", _PY, ""), "isort usort": ("*", _PY, "-c"), "pyupgrade flynt add-trailing-comma reorder-python-imports": ("*", _PY, ""),
    "autoflake autopep8 yapf docformatter unify pyformat": ("-i --in-place", _PY, ""), "2to3 futurize modernize": ("-w --write", _PY, ""),
    "ruff": ("format --fix --fix-only", _PY, ""), "pylint pycln": ("--fix", _PY, ""),
    "prettier prettierd": ("--write -w", _WEB, ""), "eslint standard xo tslint oxlint eslint_d semistandard": ("--fix", _JS, ""),
    "jscodeshift": ("*", _JS, "-d"), "js-beautify": ("-r --replace", _WEB, ""), "stylelint": ("--fix", _CSS, ""), "biome": ("--write --apply --fix", _WEB, ""),
    "gofmt goimports gofumpt golines": ("-w", ".go", ""), "rustfmt": ("*", ".rs", ""), "clang-format": ("-i", ".c .h .cc .cpp .hpp .cxx .m .proto", "-n"),
    "astyle uncrustify": ("*", ".c .h .cc .cpp .hpp", ""), "dos2unix unix2dos fromdos todos": ("*", "", ""),
    "shfmt": ("-w --write", ".sh .bash", ""), "rubocop": ("-a -A --autocorrect --autocorrect-all --auto-correct -x", ".rb", ""),
    "swiftformat": ("*", ".swift", ""), "ktlint": ("-F --format", ".kt .kts", ""), "sqlfluff": ("fix format", ".sql", ""),
    "php-cs-fixer phpcbf": ("fix", ".php", ""), "dprint": ("fmt", _WEB, ""), "buf": ("-w", ".proto", ""), "dart": ("format fix", ".dart", "--output=none"),
    "terraform tofu": ("fmt", ".tf .tfvars", "-check"), "mix": ("format", ".ex .exs", "--check-formatted"), "dotnet": ("format", ".cs", ""),
    "codespell": ("-w --write-changes", "", ""), "typos": ("-w --write-changes", "", ""), "markdownlint markdownlint-cli2": ("--fix -f", ".md", ""),
    "mdformat": ("*", ".md", ""), "yamlfmt": ("*", _YAML, "-lint -dry"), "taplo": ("fmt format", ".toml", ""), "stylua": ("*", ".lua", ""),
    "ormolu fourmolu": ("-i", ".hs", ""), "djlint": ("--reformat", ".html", ""), "nixfmt alejandra": ("*", ".nix", ""), "addlicense": ("*", "", ""),
    "buildifier": ("*", ".bzl .bazel", ""), "google-java-format": ("-i --replace", ".java", ""), "cmake-format": ("-i", ".cmake .txt", ""),
    "comby": ("-i -in-place", "", ""), "ast-grep sg": ("-U --update-all", "", ""), "nbstripout": ("*", ".ipynb", ""),
}  # fmt: skip
_VERBS = "format check fmt fix lint ci"
for _names, (_words, _endings, _looks) in _FORMATTERS.items():
    _valued = (
        ""
        if "gofmt" in _names or "shfmt" in _names
        else " ".join(o for o in _VALUED.split() if o not in (*_words.split(), *_looks.split()))
    )
    _row = Row(R, _valued, "", "", f"{_CHECKS} {_looks}", _words, _endings, _words != "*" and "f" in _words, _VERBS)
    TABLE.update(dict.fromkeys(_names.split(), _row))
FORMATTERS = frozenset(name for names in _FORMATTERS for name in names.split())
_QUERIES = ("select", ".schema", ".tables", "explain", ".dump")
_WORDS = {W: "writes it", D: "deletes it", R: "reads it", M: "makes the directory"}


def perform(run: Run, call: Call, row: Row) -> None:
    if call.name == "chmod" and any(_is_mode(arg.text) for arg in call.args):
        row = row._replace(operands=W)  # `chmod -x file`: the mode looks like an option
    words = [arg.text for arg in call.args]
    given = parse(call.args, row.valued)
    named = {*words, *(option for option, _ in given.options)}
    if row.harmless and named.intersection(row.harmless.split()):
        return
    if call.name == "sqlite3" and any(word.lstrip().lower().startswith(_QUERIES) for word in words):
        row = row._replace(operands="rn")
    for name, value in given.options:
        if value is not None and name in row.writes.split():
            run.write(value, f"{call.name} {name} writes it")
        elif value is not None and name in row.reads.split():
            run.read(value, f"{call.name} {name} reads it")
    operands = given.operands
    if operands and operands[0].text in row.verbs.split():
        operands = operands[1:]
    if row.changes == "*" or named.intersection(row.changes.split()):
        first = len(row.operands) - 1
        _rewrite(run, call, row, [arg for arg in operands[first:] if arg.text != "-"], takes_input="-" in words)
        return
    for index, arg in enumerate(operands):
        what = row.operands[min(index, len(row.operands) - 1)]
        if what == LAST:
            what = W if index == len(operands) - 1 else N
        if what == N or arg.known and arg.text == "-":
            continue
        record = {W: run.write, D: run.delete, R: run.read, M: run.make_directory}[what]
        record(arg, f"{call.name} {_WORDS[what]}")
    if row.operands == R or call.name == "uniq":
        run.output = _filtered(run, call, given)


def _rewrite(run: Run, call: Call, row: Row, operands: list[Arg], *, takes_input: bool) -> None:
    """Files that a tool rewrites: its operands, of a directory those that it takes."""
    if not operands and row.here and not takes_input:
        operands = [Arg(".", call.raw)]
    elif not operands and not takes_input:
        run.unknown_here(call.raw, f"{call.name} rewrites files")
    for arg in operands:
        if arg.known and glob.is_pattern(arg.text):  # which the tool itself resolves
            found = [name for cwd in run.state.cwds for name in glob.find(arg.text, cwd, run.listing, deep=True) or ()]
            run.write_all([arg._replace(text=name) for name in found], f"{call.name} rewrites it")
        elif not any(map(run.fs.is_dir, run.resolve(arg))):
            run.write(arg, f"{call.name} rewrites it")
        else:
            rewrite_below(run, arg, row.endings, call.name)


def rewrite_below(run: Run, arg: Arg, endings: str | None, name: str) -> None:
    """The files below a directory that a formatter takes, one rule for `src` and for `.`."""
    files, complete = source_files(run, arg, has_ending(endings or "")) if endings is not None else ([], False)
    run.write_all(files, f"{name} rewrites it")
    if not complete:
        run.unknown_below([arg], arg.raw, f"{name} rewrites files there")


# Options with which programs that are not known here write: their operands, or the file behind the option.
_CHANGES = ("--fix", "--write", "--in-place", "--inplace", "--overwrite", "--autofix", "--replace", "--update-in-place")


def by_options(run: Run, call: Call, *, short: bool) -> None:
    """A program that no row describes: options by which most programs write."""
    words = call.args
    for at, arg in enumerate(words):
        name, equals, value = arg.text.partition("=")
        if name.startswith("--out") or short and name == "-o":
            target = arg._replace(text=value) if equals else words[at + 1] if at + 1 < len(words) else None
            if target is not None and target.text[:1] != "-" and "=" not in target.text and _names_file(run, target):
                run.write(target, f"{call.name} {name} writes it")
    if any(arg.text in _CHANGES for arg in words):
        for arg in words:
            if any(map(run.fs.is_file, run.resolve(arg))):
                run.write(arg, f"{call.name} may rewrite it")


def _names_file(run: Run, arg: Arg) -> bool:
    return not any(map(run.fs.is_dir, run.resolve(arg))) and ("." in arg.text or "/" in arg.text)


_WHOLE = ("cat", "sort", "uniq", "tac", "tee", "head", "tail")


def _filtered(run: Run, call: Call, given: Given) -> Value:
    """The output of a filter: of those that only leave out or order lines to the letter, of others where its names lie."""
    texts = [call.text]
    if given.operands:
        places = [run.resolve(arg) for arg in given.operands]
        texts = [run.text_at(paths[0]) if len(paths) == 1 else None for paths in places]
    below = run.feed.below if not given.operands else ()
    if call.name not in _WHOLE or any(text is None for text in texts):
        return Value((), below)
    lines = "".join(filter(None, texts)).rstrip("\n").split("\n")
    if call.name in ("head", "tail"):
        number = next((value.text for name, value in given.options if name in ("-n", "--lines") and value), "")
        number = number or next((name[1:] for name, _ in given.options if name[1:].isdigit()), "10")
        if not number.isdigit() or len(number) > 6:
            return Value((), below)
        lines = lines[: int(number)] if call.name == "head" else lines[-int(number) :]
    return value_of("\n".join(lines))


def _is_mode(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and all(char in "rwxXstugoa,+-=" for char in word[1:])
