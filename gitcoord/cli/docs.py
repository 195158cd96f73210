"""`python -m gitcoord.cli.docs`: writes into docs/ what man pages and completion take from the table.

A man page's SYNOPSIS is made whole. In COMMANDS and OPTIONS an entry's tag and first lines are made; the prose after the line
`.\\" more` is written by hand and stays with its entry. The rest of a page is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gitcoord.cli.help import label_of
from gitcoord.cli.table import COMMANDS, table_of
from gitcoord.cli.table.coord import HEADINGS
from gitcoord.terminal.parser import JSON, QUIET, Option, Verb

_IMPLIED = {("claim", "take"), ("claim", "list"), ("handoff", "list")}  # verbs that may be left out
_MORE = '.\\" more\n'
_WIDTH = 73  # of a line of the synopsis, fonts not counted

BASH = """\
# gitcoord: bash completion of 'git {command}', called by git's own completion. Made by: python -m gitcoord.cli.docs
# shellcheck disable=SC2154  # cur, words and cword come from git's completion

# Where nothing is offered, bash goes on with file names.
_git_{command}() {{
    local found
    found=$(__git coord complete {command} "${{words[@]:__git_cmd_idx+1:cword-__git_cmd_idx}}" | cut -f 1)
    case "$cur" in
    --*=*) __gitcomp_nl "$found" "" "${{cur#*=}}" ;;
    -*) __gitcomp "$found" ;;
    *) __gitcomp_nl "$found" ;;
    esac
}}

if declare -F __git_complete >/dev/null; then
    __git_complete git-{command} _git_{command}
fi
"""

ZSH = """\
#compdef git-{command}
#description {help}
# gitcoord: zsh completion of 'git {command}', found by zsh's own completion of git. Made by: python -m gitcoord.cli.docs

_git-{command}() {{
    local line
    local -a offers open
    for line in "${{(@f)$(git coord complete {command} "${{(@Q)words[2,CURRENT]}}" 2>/dev/null)}}"; do
        case $line in
        ?*=$'\\t'*) open+=("${{${{line%%$'\\t'*}}//:/\\\\:}}:${{line#*$'\\t'}}") ;;
        ?*) offers+=("${{${{line%%$'\\t'*}}//:/\\\\:}}:${{line#*$'\\t'}}") ;;
        esac
    done
    if (( ! $#offers && ! $#open )); then
        _files
        return
    fi
    [[ $PREFIX == --*=* ]] && compset -P '--*='
    if (( $#open )); then _describe -o 'git {command}' open -S ''; fi
    if (( $#offers )); then _describe 'git {command}' offers; fi
}}

_git-{command} "$@"
"""
_TITLES = {
    "claim": "claim paths before you change them",
    "coord": "coordinate the writers of one repository",
    "handoff": "hand work over to another writer, whole",
}


def write(root: Path) -> None:
    for command in COMMANDS:
        page = root / f"docs/man/git-{command}.1"
        page.write_text(man_page(command, page.read_text()))
        (root / f"docs/completion/git-{command}.bash").write_text(BASH.format(command=command))
        zsh = ZSH.format(command=command, help=_TITLES[command])
        (root / f"docs/completion/_git-{command}").write_text(zsh)


def man_page(command: str, page: str) -> str:
    """The page with what the table says, and its prose as it is."""
    made = {"SYNOPSIS": _synopsis, "COMMANDS": _commands, "OPTIONS": _options}
    parts = re.split(r"^(\.SH .*\n)", page, flags=re.MULTILINE)
    for index, part in enumerate(parts):
        name = part.removeprefix(".SH ").strip()
        if part.startswith(".SH ") and name in made:
            parts[index + 1] = made[name](command, parts[index + 1])
    return "".join(parts)


def _prose(section: str, key: str) -> dict[str, str]:
    """The prose written by hand, by the name of its entry, which the pattern finds in the tag."""
    found = {}
    for entry in re.split(r"^\.TP\n", section, flags=re.MULTILINE)[1:]:
        tag, _, body = re.split(r"^\.SS", entry, flags=re.MULTILINE)[0].partition("\n")
        name = re.search(key, re.sub(r"\\f[BIR]", "", tag).replace("\\-", "-"))
        assert name is not None, tag
        found[name[0]] = body.partition(_MORE)[2]
    return found


def _entry(tag: str, lines: list[str], prose: str) -> str:
    return f".TP\n{tag}\n" + "".join(f"{line}\n" for line in lines) + (_MORE + prose if prose else "")


# --- SYNOPSIS -----------------------------------------------------------------------------------------------------


def _synopsis(command: str, old: str) -> str:
    lines = []
    for name, verb in table_of(command).items():
        implied = (command, name) in _IMPLIED
        head = f"\\fIgit {command}\\fR [{_bold(name)}]" if implied else f"\\fIgit {command} {_dashes(name)}\\fR"
        # They are everywhere, and OPTIONS says so.
        parts = [_usage(option) for option in verb.options if option not in (JSON, QUIET) or command != "coord"]
        lines += _wrapped(head, [*parts, *_words(verb).split()])
    return ".nf\n" + "".join(f"{line}\n" for line in lines) + ".fi\n"


def _usage(option: Option) -> str:
    text = _bold(f"--{option.name}") if len(option.name) > 1 else _bold(f"-{option.name}")
    text += _value(option)
    return (text if option.required else f"[{text}]") + "..." * (option.kind == "texts")


def _wrapped(head: str, parts: list[str]) -> list[str]:
    lines, line = [], head
    for part in parts:
        if len(_plain(line)) + len(_plain(part)) >= _WIDTH:
            lines.append(line)
            line = "     "
        line += f" {part}"
    return [*lines, line]


def _words(verb: Verb) -> str:
    """'AGENT [ROLE]' as a man page writes it: '<agent> [<role>]'."""
    text = re.sub(r"[A-Z][A-Z.-]*[A-Z]", lambda label: f"<{label[0].lower()}>", verb.words)
    return _dashes(text).replace("\\-\\- ", f"{_bold('--')} ").replace("<base..head>", "<base>..<head>")


def _value(option: Option) -> str:
    if option.kind == "flag":
        return ""
    if "|" in option.kind:
        return f"=({'|'.join(map(_bold, option.kind.split('|')))})"
    return f"=<{label_of(option).lower()}>"


def _bold(text: str) -> str:
    return f"\\fB{_dashes(text)}\\fR"


def _dashes(text: str) -> str:
    return text.replace("-", "\\-")


def _plain(text: str) -> str:
    return re.sub(r"\\f[BIR]", "", text).replace("\\-", "-")


# --- COMMANDS and OPTIONS -----------------------------------------------------------------------------------------


def _commands(command: str, old: str) -> str:
    table = table_of(command)
    names = sorted(map(re.escape, table), key=len, reverse=True)
    prose = _prose(old, f"^({'|'.join(names)})(?= |$)")
    text, heading = "", ""
    for name, verb in table.items():
        above = next((each for each, names in HEADINGS.items() if name.split()[0] in names.split()), "")
        if command == "coord" and above != heading:
            text, heading = f"{text}.SS {above}\n", above
        tag = f"{_bold(name)} {_words(verb)}".rstrip()
        text += _entry(tag, [_sentence(verb.help)], prose.get(name, ""))
    return text


def _options(command: str, old: str) -> str:
    prose = _prose(old, r"--[a-z][a-z-]*(?=[=,\[\s]|$)")
    found: dict[str, list[tuple[str, Option]]] = {}
    for name, verb in table_of(command).items():
        for option in verb.options:
            found.setdefault(option.name, []).append((name, option))
    last = [name for name in ("quiet", "json") if name in found]
    text = ""
    for name in [*(each for each in found if each not in last), *last]:
        text += _entry(
            _tag([option for _, option in found[name]]), _help_lines(command, found[name]), prose.get(f"--{name}", "")
        )
    help = "Show a short help; \\fB\\-\\-help\\fR shows this page."
    return (
        text
        + _entry("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", [help], "")
        + _entry("\\fB\\-\\-version\\fR", ["Show the version."], "")
    )


def _tag(options: list[Option]) -> str:
    short = "".join(sorted({option.short for option in options}))
    values = sorted({_value(option) for option in options if option.kind != "flag"})
    value = "|".join(dict.fromkeys(part.removeprefix("=") for part in values))
    if any(option.kind == "flag" for option in options):
        equal = f"[={value}]" if value else ""
        return ", ".join([*([_bold(f"-{short}")] if short else []), _bold(f"--{options[0].name}") + equal])
    letter = [f"{_bold(f'-{short}')} {value}"] if short else []
    return ", ".join([*letter, f"{_bold(f'--{options[0].name}')}={value}"])


def _help_lines(command: str, uses: list[tuple[str, Option]]) -> list[str]:
    """The help of an option; where few verbs have it, with their names."""
    helps: dict[str, list[str]] = {}
    for name, option in uses:
        helps.setdefault(option.help, []).append(name)
    lines = []
    for help, names in sorted(helps.items(), key=lambda item: -len(item[1])):
        if len(names) > 5 or len(names) == len(table_of(command)):
            lines.append(_sentence(help))
        else:
            lower = help if help[1].isupper() else help[0].lower() + help[1:]
            lines.append(f"With {', '.join(map(_bold, names))}: {_sentence(lower)}")
    return lines


def _sentence(text: str) -> str:
    return _dashes(text.replace("\\", "\\e"))


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
