#!/bin/sh
# Install gitcoord for this user, show it, or test this checkout. See usage() below, or: ./install.sh --help
#
# What is put where is noted in <data>/gitcoord/manifest, so that --uninstall takes away exactly that. An upgrade builds a
# whole new tree beside the old one and then renames the three commands into place, one rename each: a `git claim` that
# runs meanwhile is all old or all new. The tree before the last one stays until the next run, for whoever still runs it.
#
# GITCOORD_INSTALL_FROM=<site-packages>: take the dependencies from there (by links) and no network. For tests.
set -eu

usage() {
    cat <<'END'
usage: ./install.sh [--prefix DIR] [--without-mcp] [--without-page] [--dry-run]
                                                   install or upgrade, for this user
   or: ./install.sh --uninstall [--hooks | --keep-hooks] [--prefix DIR] [--dry-run]
   or: ./install.sh --demo [--prefix DIR]          install, then show the main job in a throw-away repository
   or: ./install.sh --test [--soak] [<pytest argument>...]
                                                   prepare .venv in this checkout and run the whole suite
   or: ./install.sh --help

Commands go to ~/.local/bin; everything else below ${XDG_DATA_HOME:-~/.local/share}. With --prefix: DIR/bin and DIR/share.
--without-mcp leaves out the library of 'git coord mcp', which brings some thirty packages; --without-page those of 'git coord page'.
--with-mcp and --with-page are the default.
--uninstall offers to take the hooks out of the repositories that were set up here. Without a terminal it needs a word for that: --hooks
takes them out, --keep-hooks leaves them, and those repositories refuse every commit until gitcoord is installed again.
No other repository and no shell start-up file is ever changed. Needs git 2.38 and Python 3.11 (or later); PYTHON names another one.
END
}

NL='
'
SOURCE=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
FILES="
share/man/man1/git-claim.1
share/man/man1/git-coord.1
share/man/man1/git-handoff.1
share/bash-completion/completions/git-claim
share/bash-completion/completions/git-coord
share/bash-completion/completions/git-handoff
share/zsh/site-functions/_git-claim
share/zsh/site-functions/_git-coord
share/zsh/site-functions/_git-handoff
bin/git-coord
bin/git-handoff
bin/git-claim
"

say() { printf '%s\n' "$@"; }
warn() {
    wipe
    printf '%s\n' "$@" >&2
}
die() {
    wipe
    printf 'error: %s\n' "$1" >&2
    shift
    for line; do printf 'hint: %s\n' "$line" >&2; done
    exit 1
}

# Say what is being done. On a terminal the next line takes the place of this one, which is cut at the right margin.
shown=''
progress() {
    if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
        printf '\r\033[K\033[?7l%s ...\033[?7h' "$1"
        shown=1
    else
        say "$1 ..."
    fi
}

wipe() {
    [ -z "$shown" ] || printf '\r\033[K'
    shown=''
}

seconds_since() { say "$(($(date +%s) - $1)) s"; }

main() {
    action=install prefix='' dry='' hooks='' soak='' mcp=1 page=1 began=$(date +%s)
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help) usage && exit ;;
        --uninstall) action=uninstall ;;
        --hooks) hooks=out ;;
        --keep-hooks) hooks=kept ;;
        --demo) action=demo ;;
        --dry-run) dry=1 ;;
        --with-mcp) mcp=1 ;;
        --without-mcp) mcp='' ;;
        --with-page) page=1 ;;
        --without-page) page='' ;;
        --prefix)
            [ $# -gt 1 ] || die "--prefix needs a directory"
            prefix=$2
            shift
            ;;
        --prefix=*) prefix=${1#*=} ;;
        --test)
            shift
            if [ "${1:-}" = --soak ]; then
                soak=1
                shift
            fi
            # shellcheck source=tests/checkout.sh
            . "$SOURCE/tests/checkout.sh"
            test_checkout "$@"
            exit
            ;;
        *)
            usage >&2
            exit 2
            ;;
        esac
        shift
    done
    places
    case $action in
    uninstall) uninstall ;;
    install) install ;;
    demo)
        install
        [ -n "$dry" ] && exit
        say "" "== demo"
        PATH=$BIN:$PATH
        export PATH
        exec git coord demo
        ;;
    esac
}

# --- where ---------------------------------------------------------------------------------------------------------

places() {
    if [ -n "$prefix" ]; then
        case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
        BIN=${prefix%/}/bin SHARE=${prefix%/}/share
    else
        [ -n "${HOME:-}" ] || die "HOME is not set" "./install.sh --prefix DIR"
        SHARE=${HOME%/}/.local/share BIN=${HOME%/}/.local/bin
        # A relative XDG_DATA_HOME is to be ignored, says its specification.
        case ${XDG_DATA_HOME:-} in /*) SHARE=${XDG_DATA_HOME%/} ;; esac
    fi
    case $BIN$SHARE in *"$NL"*) die "a directory's name holds a line break" ;; esac
    DATA=$SHARE/gitcoord
    MANIFEST=$DATA/manifest
}

destination() {
    case $1 in
    bin/*) printf '%s\n' "$BIN/${1#bin/}" ;;
    share/*) printf '%s\n' "$SHARE/${1#share/}" ;;
    esac
}

# --- what it stands on ---------------------------------------------------------------------------------------------

check_git() {
    version=$(git version 2>/dev/null | sed -n 's/^git version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    [ -n "$version" ] || die "git is not installed (2.38 or later is needed)" "on Debian and Ubuntu: apt install git"
    # shellcheck disable=SC2086  # two words
    set -- $version
    [ "$1" -gt 2 ] || { [ "$1" -eq 2 ] && [ "$2" -ge 38 ]; } || die "git $1.$2 is too old: 2.38 or later is needed"
}

# Prints the real interpreter, not a version manager's script and not a venv's link, if it is new enough.
real_python() {
    "$1" -I - 2>/dev/null <<'END'
import os, sys
if sys.version_info < (3, 11):
    sys.exit(1)
base = getattr(sys, "_base_executable", "") or sys.executable
real = os.path.realpath(base)
# Homebrew's own path changes with every patch release; its link does not.
print(base if "/Cellar/" in real else real)
END
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        PY=$(real_python "$PYTHON") || die "PYTHON=$PYTHON is not Python 3.11 or later"
        return
    fi
    for name in python3 python3.11 python3.12 python3.13 python3.14 python3.15 python3.16 python3.17 python3.18 python3.19; do
        PY=$(real_python "$name") && return
    done
    die "no Python 3.11 or later on PATH" "on Debian 12, Ubuntu 24.04 and later: apt install python3 python3-venv" \
        "or name one: PYTHON=/path/to/python3.12 ./install.sh"
}

# The interpreter of the everyday command, which needs no packages: of those with the venv's version, one that has its C
# modules built in, as distributions make it. It starts noticeably quicker than one that loads them from files.
quick_python() {
    [ -z "${PYTHON:-}" ] || { say "$PY" && return; }
    name=$("$PY" -I -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    for candidate in "$PY" "$name" "/usr/bin/$name" "/usr/local/bin/$name"; do
        found=$(real_python "$candidate") || continue
        "$found" -I - "$name" 2>/dev/null <<'END' && say "$found" && return
import sys
sys.exit(not ("zlib" in sys.builtin_module_names and sys.argv[1] == "python%d.%d" % sys.version_info[:2]))
END
    done
    say "$PY"
}

has_venv() { "$PY" -I -c 'import venv, ensurepip' 2>/dev/null; }

check_venv() {
    has_venv && return
    package=$("$PY" -I -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    die "$PY cannot make virtual environments" "on Debian and Ubuntu: apt install $package"
}

# --- install -------------------------------------------------------------------------------------------------------

install() {
    check_git
    find_python
    [ -n "${GITCOORD_INSTALL_FROM:-}" ] || has_uv || check_venv
    version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$SOURCE/gitcoord/__init__.py")
    for file in $FILES; do refuse_foreign "$(destination "$file")"; done
    tree=$DATA/venv-$(date +%Y%m%d%H%M%S)-$$
    if [ -n "$dry" ]; then
        plan
        return
    fi
    say "installing gitcoord $version for $PY"
    DIRS='' phase=building
    guard
    make_dir "$DATA"
    lock
    before=$(listed file)
    write_manifest "$before"
    make_tree
    stage
    for file in $FILES; do make_dir "$(dirname "$(destination "$file")")"; done
    after=$(for file in $FILES; do say "$(checksum "$tree/stage/$file") $(destination "$file")"; done)
    write_manifest "$before$NL$after"
    phase=placing
    for file in $FILES; do put "$tree/stage/$file" "$(destination "$file")"; done
    phase=placed
    remove_files "$(say "$before" | without_targets)"
    remove_trees "$tree" "$(listed tree)"
    write_manifest "$after" "$tree"
    unlock
    trap - EXIT
    wipe
    say "installed in $(seconds_since "$began"): git claim, git coord and git handoff in $BIN"
    advise
}

plan() {
    say "would install gitcoord $version for $PY"
    say "would make    $tree/"
    for file in $FILES; do
        target=$(destination "$file")
        if [ -e "$target" ]; then say "would replace $target"; else say "would write   $target"; fi
    done
    say "would note    $MANIFEST" "nothing was changed"
}

# A file of that name which is not gitcoord's is somebody's own.
refuse_foreign() {
    [ -e "$1" ] || [ -L "$1" ] || return 0
    grep -q gitcoord "$1" 2>/dev/null ||
        die "$1 exists and is not gitcoord's" "move it away, or choose another place: --prefix DIR"
}

make_dir() {
    [ -d "$1" ] && return
    make_dir "$(dirname "$1")"
    # Whoever makes the same directory at this moment is welcome; then it is not ours to remove.
    if mkdir "$1" 2>/dev/null; then DIRS=$DIRS$1$NL; else [ -d "$1" ] || die "cannot make the directory $1"; fi
}

# One installer at a time. A lock whose owner is gone is taken.
lock() {
    LOCK=$DATA/install.lock
    until ln -s "$$" "$LOCK" 2>/dev/null; do
        [ -w "$DATA" ] || die "cannot write in $DATA"
        owner=$(readlink "$LOCK") || continue
        case $owner in '' | *[!0-9]*) die "$LOCK is in the way" ;; esac
        kill -0 "$owner" 2>/dev/null && die "another install.sh is running (process $owner)"
        rm -f "$LOCK"
    done
    locked=1
}

unlock() {
    rm -f "$LOCK"
    locked=''
}

guard() {
    locked=''
    trap 'abandon' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# Something failed. While the new tree was being built nothing else had been touched, so the old install is as it was.
abandon() {
    status=$?
    trap - EXIT
    if [ "$phase" = building ]; then
        rm -rf "$tree"
        if [ -n "$locked" ] && [ -z "$(listed file)" ]; then rm -f "$MANIFEST"; fi
        [ -z "$locked" ] || unlock
        remove_dirs "$DIRS"
        warn "nothing was installed or changed"
    else
        unlock
        warn "stopped half way: run it again, or with --uninstall"
    fi
    exit "$status"
}

make_tree() {
    if [ -n "${GITCOORD_INSTALL_FROM:-}" ]; then
        progress "making a virtual environment"
        "$PY" -I -m venv --without-pip "$tree"
        site=$(site_packages)
        progress "copying gitcoord"
        "$PY" -I - "$SOURCE" "$site" "$GITCOORD_INSTALL_FROM" "$mcp" "$page" <<'END'
import compileall, os, shutil, sys
source, site, given, mcp, page = sys.argv[1:]
for name in os.listdir(given):
    if (not mcp and name in ("mcp", "mcp_types")) or (not page and name in ("starlette", "uvicorn")):
        continue
    if not name.startswith(("gitcoord", "_gitcoord", "__editable__", "pip", "__pycache__")) and not name.endswith(".pth"):
        os.symlink(os.path.join(os.path.abspath(given), name), os.path.join(site, name))
shutil.copytree(f"{source}/gitcoord", f"{site}/gitcoord")  # with what is compiled already
compileall.compile_dir(f"{site}/gitcoord", quiet=1)
END
        mkdir -p "$tree/share/gitcoord"
        cp -R "$SOURCE/githooks" "$tree/share/gitcoord/"
    else
        # shellcheck disable=SC2046  # a list of words
        set -- $(sed -n '/^dependencies = \[/,/^]/s/^ *"\([A-Za-z0-9_-]*\).*/\1/p' "$SOURCE/pyproject.toml") ${mcp:+mcp} ${page:+starlette uvicorn}
        extras="${mcp:+mcp}${mcp:+${page:+,}}${page:+page}"
        make_venv "$tree" "$# packages and what they need: $*" "$SOURCE${extras:+[$extras]}"
        site=$(site_packages)
    fi
}

site_packages() { "$tree/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# uv takes a third of the time of venv and pip. It does not read pip's settings: where there are some, such as those of a
# company's own index, pip does it.
has_uv() {
    command -v uv >/dev/null 2>&1 && ! env | grep -q '^PIP_' &&
        ! any_of /etc/pip.conf "${HOME:-}/.pip/pip.conf" "${XDG_CONFIG_HOME:-${HOME:-}/.config}/pip/pip.conf"
}

any_of() {
    for name; do
        if [ -e "$name" ]; then return; fi
    done
    return 1
}

# $1: where, $2: what will be in it, in words; then the words for pip.
make_venv() {
    venv=$1 words=$2
    shift 2
    if has_uv; then
        progress "installing with uv $words"
        uv venv --quiet --seed --allow-existing --python "$PY" "$venv" &&
            uv pip install --quiet --compile-bytecode --python "$venv/bin/python" "$@" && return
        warn "uv failed, so pip is tried"
    fi
    progress "making a virtual environment"
    "$PY" -I -m venv "$venv"
    progress "installing $words"
    log=$venv/pip.log
    { "$venv/bin/python" -I -m pip --disable-pip-version-check --no-input install "$@" 2>&1 || say "pip failed"; } |
        tee "$log" | follow_pip
    if [ "$(tail -n 1 "$log")" = "pip failed" ]; then
        warn "$(tail -n 20 "$log")"
        die "pip failed" "the packages come from PyPI: is there a network?"
    fi
    rm -f "$log"
}

# On a terminal, the package that pip is at.
follow_pip() {
    while read -r doing name _; do
        [ "$doing" != Collecting ] || [ -z "$shown" ] || progress "installing $name"
    done
}

# Everything that goes outside the tree is made ready inside it first, and tried.
stage() {
    man=$tree/stage/share/man/man1 bash=$tree/stage/share/bash-completion/completions
    zsh=$tree/stage/share/zsh/site-functions bin=$tree/stage/bin
    mkdir -p "$man" "$bash" "$zsh" "$bin"
    cp "$SOURCE"/docs/man/*.1 "$man/"
    for name in git-claim git-coord git-handoff; do
        cp "$SOURCE/docs/completion/$name.bash" "$bash/$name"
        cp "$SOURCE/docs/completion/_$name" "$zsh/_$name"
    done
    progress "compiling the commands"
    stage_commands
    chmod 755 "$bin"/*
    chmod 644 "$man"/* "$bash"/* "$zsh"/*
    progress "trying the commands"
    "$bin/git-claim" -h >/dev/null </dev/null || die "the new git-claim does not start"
    "$bin/git-handoff" -h >/dev/null </dev/null || die "the new git-handoff does not start"
    "$bin/git-coord" version >/dev/null </dev/null || die "the new git-coord does not start"
}

# The commands start on the bare interpreter, without a shell, without site, from one file of compiled code.
stage_commands() {
    quick=$(quick_python)
    "$quick" -I -c 'import sys; sys.path.insert(0, sys.argv[1]); from gitcoord.startup.bundle import main; main(*sys.argv[1:])' \
        "$site" "$tree"
    # A first line with a blank in the name or beyond 127 bytes (Linux before 5.1) is cut by the kernel.
    first="#!$quick -IS"
    length=$(printf '%s' "$first" | wc -c)
    case $quick in *[[:space:]]*) length=999 ;; esac
    for name in git-claim git-coord git-handoff; do
        if [ "$length" -lt 127 ]; then
            { say "$first" "# gitcoord" && cat "$tree/$name.py"; } >"$bin/$name"
        else
            shim "$bin/$name" "exec $(quote "$quick") -IS $(quote "$tree/$name.py") \"\$@\""
        fi
    done
}

shim() { printf '#!/bin/sh\n# gitcoord\n%s\n' "$2" >"$1"; }

quote() { printf '%s\n' "$1" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"; }

put() {
    cp -p "$1" "$2.new-$$"
    mv -f "$2.new-$$" "$2"
}

advise() {
    case ":$PATH:" in
    *":$BIN:"*) ;;
    *) say "note: $BIN is not on PATH; add to your shell's start-up file:" "  export PATH=\"$BIN:\$PATH\"" ;;
    esac
    if command -v man >/dev/null 2>&1 && ! PATH="$BIN:$PATH" man -w git-claim >/dev/null 2>&1; then
        say "note: man does not look in $SHARE/man; for 'git claim --help' add:" "  export MANPATH=\"$SHARE/man:\$MANPATH\""
    fi
    if command -v zsh >/dev/null 2>&1; then
        say "note: for completion in zsh add before compinit:" "  fpath+=(\"$SHARE/zsh/site-functions\")"
    fi
}

# --- the manifest: lines 'dir <path>', 'tree <path>' and 'file <checksum> <size> <path>' -----------------------------

listed() {
    if [ -f "$MANIFEST" ]; then sed -n "s/^$1 //p" "$MANIFEST"; fi
}

# Written before anything is put anywhere, so that also an interrupted install can be taken away. $1: files, $2: tree.
write_manifest() {
    {
        say "# ./install.sh --uninstall removes these"
        { listed dir && printf '%s' "$DIRS"; } | sort -u | sed 's/^/dir /'
        say "${2:-$(listed tree)}" | sed -n 's/^./tree &/p'
        say "$1" | sed -n 's/^./file &/p'
    } >"$MANIFEST.new"
    mv -f "$MANIFEST.new" "$MANIFEST"
}

checksum() { cksum <"$1"; }

# Of lines '<checksum> <size> <path>', those whose path this version does not write.
without_targets() {
    while read -r sum size path; do
        kept=''
        for file in $FILES; do [ "$path" != "$(destination "$file")" ] || kept=1; done
        [ -n "$kept" ] || [ -z "$path" ] || say "$sum $size $path"
    done
}

# --- uninstall -----------------------------------------------------------------------------------------------------

uninstall() {
    NOTED=$(noted)
    if [ ! -f "$MANIFEST" ]; then
        say "gitcoord is not installed below $SHARE"
        if [ -z "$dry" ] && [ -n "$(hooked)" ]; then take_hooks_out; fi
        [ -n "$dry" ] || fetch_no_ledger
        if [ -z "$dry" ] && [ -z "$(hooked)$(served)" ]; then forget; fi
        return
    fi
    if [ -n "$dry" ]; then
        hooked | while IFS= read -r repository; do say "would offer to take the hooks out of $repository"; done
        served | while IFS= read -r repository; do say "would leave the gate in $repository, which then refuses every push"; done
        listed file | while read -r sum size path; do say "would remove $path"; done | sort -u
        for found in "$DATA"/venv-*; do say "would remove $found/"; done
        say "would remove $MANIFEST" "nothing was changed"
        return
    fi
    if [ -n "$(hooked)" ]; then take_hooks_out; fi
    name_gone
    fetch_no_ledger
    if [ -n "$(served)" ]; then name_servers; fi
    lock
    remove_files "$(listed file)"
    remove_trees
    dirs=$(listed dir)
    rm -f "$MANIFEST"
    unlock
    [ -n "$(hooked)$(served)" ] || forget
    remove_dirs "$dirs"
    say "uninstalled gitcoord"
}

forget() {
    rm -f "$DATA/repositories"
    rmdir "$DATA" 2>/dev/null || true
}

# The repositories that were noted by setup and hooks, and the one in which this runs, if that has hooks.
noted() {
    [ ! -f "$DATA/repositories" ] || cat "$DATA/repositories"
    here=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || return 0
    if is_hooked "$here" && ! grep -qsxF -e "$here" "$DATA/repositories"; then say "$here"; fi
}

each_noted() { [ -z "$NOTED" ] || say "$NOTED"; }

# The repositories in which hooks of gitcoord are installed.
hooked() {
    each_noted | while IFS= read -r repository; do
        if is_hooked "$repository"; then say "$repository"; fi
    done
}

# As many as `git coord repositories` names.
name_gone() {
    gone=$(each_noted | while IFS= read -r repository; do [ -e "$repository" ] || say "  $repository"; done)
    [ -n "$gone" ] || return 0
    more=$(($(say "$gone" | wc -l) - 5))
    warn "not there any more:" "$(say "$gone" | head -n 5)"
    [ "$more" -le 0 ] || warn "  and $more more"
    warn "where one was moved to, its hooks are still in it; run this there too: $SOURCE/install.sh --uninstall --hooks"
}

# Take the ledger out of what `git fetch` asks for, except where the hooks stay: once it is deleted at the remote, every fetch
# would fail for its name. `git coord repositories --uninstall-hooks` does the same.
fetch_no_ledger() {
    fetched='^[+]refs/(heads/gitcoord(-sessions/[*])?|gitcoord/sessions/[*]|claims/[*]):'
    each_noted | while IFS= read -r repository; do
        if [ ! -f "$repository/config" ] || is_hooked "$repository"; then continue; fi
        git config --file "$repository/config" --name-only --get-regexp '^remote\..*\.fetch$' "$fetched" | sort -u |
            while IFS= read -r key; do
                git config --file "$repository/config" --unset-all "$key" "$fetched" || warn "$repository: $key names the ledger still"
            done
    done
}

# The repositories that others push to, and in which gitcoord judges that.
served() {
    each_noted | while IFS= read -r repository; do
        if is_served "$repository"; then say "$repository"; fi
    done
}

made() { grep -qs '^# Made by git coord install-hooks' "$@"; }

is_served() { made "$1/hooks/pre-receive" "$1/hooks/pre-receive.d/gitcoord"; }

is_hooked() {
    made "$1/hooks/pre-commit" "$1"/hooks/gitcoord-* "$1"/gitcoord-hooks/* || { ! is_served "$1" && made "$1"/hooks/*; }
}

# A server's gate judges what others push, so it is taken out only by a command that names it.
name_servers() {
    warn "gitcoord's gate is in these repositories, and refuses every push to them without it:"
    served | sed 's/^/  /' >&2
    warn "to take it out: install gitcoord again, git coord server uninstall <repository>, ./install.sh --uninstall"
}

# Without gitcoord its hooks refuse every commit: they could not judge it.
take_hooks_out() {
    say "gitcoord's hooks are installed in these repositories, and refuse every commit without it:"
    hooked | sed 's/^/  /'
    if [ -z "$hooks" ]; then
        if [ ! -t 0 ] || [ ! -t 1 ]; then
            die "not a terminal, so say what happens to these hooks; nothing was changed" \
                "take them out: ./install.sh --uninstall --hooks" \
                "leave them, to install gitcoord again later: ./install.sh --uninstall --keep-hooks"
        fi
        printf 'take them out there? [Y/n] '
        read -r answer || answer=n
        case $answer in '' | [Yy]*) hooks=out ;; esac
    fi
    [ "$hooks" != out ] || hooked | while IFS= read -r repository; do
        # From its work tree, where a hook manager has its files.
        if told=$(cd "${repository%/.git}" && uninstall_hooks </dev/null) && ! is_hooked "$repository"; then
            say "took the hooks out of $repository"
            say "$told" | sed -n 's/^note: .*not committed.*/  &/p'
        else
            warn "the hooks stay in $repository"
        fi
    done
    [ -z "$(hooked)" ] || warn "to take them out later, a person runs: ./install.sh --uninstall --hooks"
}

# By the installed command; where it is gone, by this checkout, which needs no packages for that.
uninstall_hooks() {
    if [ -x "$BIN/git-coord" ]; then
        "$BIN/git-coord" uninstall-hooks
    else
        find_python
        "$PY" -I -B -c 'import sys; sys.path.insert(0, sys.argv[1]); from gitcoord.cli.entry import leave, main
leave(main("coord", ["uninstall-hooks"]))' "$SOURCE"
    fi
}

# Only files that are still as they were written.
remove_files() {
    say "$1" | while read -r sum size path; do
        [ -f "$path" ] || continue
        if [ "$(checksum "$path")" = "$sum $size" ]; then rm -f "$path"; fi
    done
    say "$1" | while read -r sum size path; do
        [ ! -f "$path" ] || warn "left alone, changed since it was installed: $path"
    done
}

# All but those named.
remove_trees() {
    for found in "$DATA"/venv-*; do
        if [ -d "$found" ] && [ "$found" != "${1:-}" ] && [ "$found" != "${2:-}" ]; then rm -rf "$found"; fi
    done
}

# Children before parents; one that holds something else stays.
remove_dirs() {
    say "$1" | sort -r | while read -r path; do
        [ -z "$path" ] || rmdir "$path" 2>/dev/null || true
    done
}

main "$@"
