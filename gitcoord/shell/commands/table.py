"""Commands that a row can describe: which options take values, which of these are files, what the operands are."""

from __future__ import annotations

from gitcoord.shell.options import parse
from gitcoord.shell.state import value_of
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Call, Run

# What is done to an operand: written, deleted, read, made as a directory, nothing.
W, D, R, M, N = "w", "d", "r", "m", "n"


class Row(NamedTuple):
    operands: str  # one letter each, the last for all that follow
    valued: str = ""  # options with a value
    writes: str = ""  # those of them whose value is a file that is written
    reads: str = ""
    harmless: str = ""  # with one of these options it does nothing


_SUMS = Row(R, "", harmless="")
TABLE: dict[str, Row] = {
    "cat": Row(R),
    "tee": Row(W),
    "mkdir": Row(M, "-m --mode -Z --context"),
    "uniq": Row("rwn", "-f -s -w --skip-fields --skip-chars --check-chars"),
    "openssl": Row(N, "-out -keyout -in -inkey", "-out -keyout", "-in -inkey"),
    "rm": Row(D),
    "rmdir": Row(D),
    "unlink": Row(D),
    "srm": Row(D),
    "trash": Row(D),
    "shred": Row(W, "-n -s --iterations --size --random-source"),
    "touch": Row(W, "-d -r -t --date --reference --time"),
    "truncate": Row(W, "-s -r --size --reference"),
    "mkfifo": Row(W, "-m --mode"),
    "mknod": Row("wn", "-m --mode"),
    "chmod": Row("nw", "--reference"),
    "chown": Row("nw", "--reference --from"),
    "chgrp": Row("nw", "--reference"),
    "chattr": Row("nw"),
    "setfacl": Row(W, "-m -M -x -X --modify --remove --set"),
    "chflags": Row("nw"),
    "xattr": Row("nnw"),
    "fallocate": Row(W, "-l -o -n --length --offset"),
    "sponge": Row(W),
    "rename": Row("nw"),
    "prename": Row("nw"),
    "link": Row("nw"),
    "sort": Row(R, "-o -k -t -S -T --output --key --field-separator --buffer-size --temporary-directory", "-o --output"),
    "shuf": Row(R, "-o -n -i --output --head-count --input-range --random-source", "-o --output"),
    "iconv": Row(R, "-o -f -t --output --from-code --to-code", "-o --output"),
    "pandoc": Row(
        R, "-o -f -t -s --output --from --to --template --css -V --metadata", "-o --output", "--template --css"
    ),
    "xmllint": Row(R, "--output --xpath --schema --encode", "--output", "--schema"),
    "xsltproc": Row(R, "-o --output --stringparam", "-o --output"),
    "dot": Row(R, "-o -T -K", "-o"),
    "objcopy": Row("rw", "-O -I -j -R"),
    "bison": Row(R, "-o --output", "-o --output"),
    "flex": Row(R, "-o", "-o"),
    "ssh-keygen": Row(N, "-f -t -b -C -N -P", "-f", "", "-l -y -F"),
    "gpg": Row(R, "-o -u -r --output --recipient --local-user", "-o --output"),
    "base64": Row(R, "-w -i -o --wrap", "-o", "-i"),
    "column": Row(R, "-t -s -o -c -N"),
    "vi": Row(W, "-c -S -u"),
    "vim": Row(W, "-c -S -u --cmd"),
    "nvim": Row(W, "-c -S -u -l --cmd"),
    "nano": Row(W),
    "pico": Row(W),
    "emacs": Row(W, "-l -f --eval --load --funcall"),
    "ed": Row(W, "-p"),
    "ex": Row(W, "-c"),
    "red": Row(W),
    "code": Row(R),
    "tac": Row(R),
    "head": Row(R, "-n -c --lines --bytes"),
    "tail": Row(R, "-n -c -s --lines --bytes --pid --sleep-interval"),
    "less": Row(R, "-p -o -O --log-file", "-o -O --log-file"),
    "more": Row(R),
    "most": Row(R),
    "view": Row(R),
    "bat": Row(R, "-l -r -H --language --line-range --style --theme --color --paging"),
    "batcat": Row(R, "-l -r -H --language --line-range --style --theme --color --paging"),
    "nl": Row(R, "-b -w -s -v -n"),
    "rev": Row(R),
    "fold": Row(R, "-w"),
    "fmt": Row(R, "-w"),
    "expand": Row(R, "-t"),
    "unexpand": Row(R, "-t"),
    "pr": Row(R, "-l -w -h"),
    "cut": Row(R, "-d -f -c -b --delimiter --fields --characters --bytes --output-delimiter"),
    "paste": Row(R, "-d"),
    "join": Row(R, "-t -1 -2 -o -a -j"),
    "comm": Row(R),
    "wc": Row(R, "--files0-from"),
    "diff": Row(R, "-U -C -x -I --label --exclude --color"),
    "diff3": Row(R),
    "sdiff": Row(R, "-o -w", "-o"),
    "colordiff": Row(R, "-U -C -x"),
    "delta": Row(R),
    "cmp": Row(R, "-n -i"),
    "vimdiff": Row(W),
    "file": Row(R, "-m -f"),
    "strings": Row(R, "-n -t -e"),
    "od": Row(R, "-A -t -N -j -w"),
    "xxd": Row("rw", "-l -s -c -g"),
    "hexdump": Row(R, "-n -s -e -C"),
    "hd": Row(R, "-n -s"),
    "base32": Row(R, "-w"),
    "md5sum": _SUMS, "sha1sum": _SUMS, "sha224sum": _SUMS, "sha256sum": _SUMS, "sha384sum": _SUMS, "sha512sum": _SUMS,
    "shasum": Row(R, "-a"), "b2sum": _SUMS, "cksum": _SUMS, "sum": _SUMS, "md5": _SUMS,
    "zcat": Row(R), "bzcat": Row(R), "xzcat": Row(R), "zstdcat": Row(R), "gzcat": Row(R), "zless": Row(R), "zmore": Row(R),
    "zgrep": Row("nr", "-e -f"), "bzgrep": Row("nr", "-e -f"), "xzgrep": Row("nr", "-e -f"),
    "look": Row("nr"),
    "tsort": Row(R),
    "xmlstarlet": Row("nnr"),
    "xq": Row("nr"),
    "csvcut": Row(R, "-c"), "csvlook": Row(R), "csvgrep": Row(R, "-c -m"), "csvstat": Row(R),
    "glow": Row(R), "mdcat": Row(R), "pygmentize": Row(R, "-l -f -o -O", "-o"),
    "xsv": Row("nr"),
    "sshpass": Row(N),
    "visudo": Row(W), "vipw": Row(W),
}  # fmt: skip
_WORDS = {W: "writes it", D: "deletes it", R: "reads it", M: "makes the directory"}


def perform(run: Run, call: Call, row: Row) -> None:
    if call.name == "chmod" and any(_is_mode(arg.text) for arg in call.args):
        row = row._replace(operands=W)  # `chmod -x file`: the mode looks like an option
    given = parse(call.args, row.valued)
    if row.harmless and given.has(*row.harmless.split()):
        return
    for name, value in given.options:
        if value is not None and name in row.writes.split():
            run.write(value, f"{call.name} {name} writes it")
        elif value is not None and name in row.reads.split():
            run.read(value, f"{call.name} {name} reads it")
    for index, arg in enumerate(given.operands):
        what = row.operands[min(index, len(row.operands) - 1)]
        if what == N or arg.known and arg.text == "-":
            continue
        record = {W: run.write, D: run.delete, R: run.read, M: run.make_directory}[what]
        record(arg, f"{call.name} {_WORDS[what]}")
    if call.name == "cat" and call.text is not None and not given.operands:
        run.output = value_of(call.text.rstrip("\n"))
    elif (row.operands == R or call.name == "uniq") and not given.operands:
        run.output = run.feed._replace(whole=())  # a filter: its output may be its input


def _is_mode(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and all(char in "rwxXstugoa,+-=" for char in word[1:])
