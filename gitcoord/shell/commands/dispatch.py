"""Finds the file that knows a command. Each has `perform(run, call)`; they are loaded when a command of theirs is met."""

from __future__ import annotations

from gitcoord.shell.commands.known import BUILDERS, HARMLESS
from gitcoord.shell.commands.table import TABLE, by_options
from gitcoord.shell.commands.table import perform as by_table
from gitcoord.shell.paths import base_name
from gitcoord.shell.state import Arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.shell.interpreter import Call, Run

_FAMILIES = {
    "files": "cp mv ln install dd mktemp rsync scp",
    "text": "sed gsed awk gawk mawk nawk perl ruby patch grep egrep fgrep rg ag ack",
    "archives": "tar bsdtar gtar unzip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lzma curl wget pigz",
    "git": "git git-claim git-coord git-handoff gh",
    "wrappers": "sudo doas env nice timeout gtimeout nohup time command builtin exec stdbuf setsid ionice chrt taskset unbuffer "
    "flock xargs parallel watch script su runuser npx bunx pnpx uvx pipx coproc strace ltrace chronic entr caffeinate "
    "busybox toybox fakeroot proxychains rtk",
    "shells": "bash sh dash zsh ksh ash fish eval source . trap python python2 python3 pypy pypy3 node nodejs deno php lua Rscript "
    "julia elixir groovy osascript pwsh powershell tclsh expect gdb at batch crontab tmux screen",
    "builtins": "cd pushd popd export declare typeset local readonly unset set shift read mapfile readarray "
    "getopts printf echo pwd dirname basename realpath readlink which type let hash kill pkill killall shopt enable",
    "find": "find fd fdfind ls",
    "tools": "make gmake npm yarn pnpm bun pip pip3 pipenv poetry uv cargo go bundle composer pre-commit husky lefthook hatch tox nox rye "
    "pdm mvn gradle gradlew mvnw cmake bazel",
}  # fmt: skip
FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}

MAX_NESTED = 12  # programs that run programs
# Directories whose programs are the well-known ones of that name.
_BIN = ("/bin", "/sbin", "/.bin")
_OWN_NAMES = ("gradlew", "mvnw", "configure", "manage.py")


def program(name: str) -> str:
    """The well-known name of a program that is called by its path; '' for a script of somebody's own."""
    if "/" not in name:
        return name
    place, _, last = name.rpartition("/")
    if place in ("bin", "sbin") or place.endswith(_BIN) or last in _OWN_NAMES:
        return last
    return ""


_ASKS = ("--version", "--help", "-V", "-h", "version", "help")


def perform(run: Run, call: Call) -> None:
    name = program(call.name)
    family = FAMILY.get(name)
    if family is not None:
        module = __import__(f"gitcoord.shell.commands.{family}", fromlist=("perform",))
        module.perform(run, call._replace(name=name))
    elif name in TABLE:
        by_table(run, call._replace(name=name), TABLE[name])
    elif name in HARMLESS or name and len(call.args) == 1 and call.args[0].text in _ASKS:
        return
    elif name in BUILDERS:
        run.build(call.name, name)
        by_options(run, call, short=True)
    elif name:
        run.unknown(call.name, f"what '{base_name(call.name)}' does is not known")
        by_options(run, call, short=True)
    else:
        _script(run, call)


def _script(run: Run, call: Call) -> None:
    """A program of the project's own, called by its path: followed where it is a script of a shell."""
    paths = run.resolve(Arg(call.name, call.name))
    text = (run.text_at(paths[0]) if len(paths) == 1 else None) or ""
    first = text.partition("\n")[0]
    interpreter = next(
        (name for name in ("bash", "sh", "python3", "python", "node", "ruby", "perl") if name in first), ""
    )
    if first.startswith("#!") and interpreter and run.depth < MAX_NESTED:
        run.call(call._replace(name=interpreter, args=[Arg(call.name, call.name), *call.args]))
    else:
        run.unknown(call.name, f"runs '{base_name(call.name)}', which may do anything")
