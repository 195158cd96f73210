# shellcheck shell=sh disable=SC2154  # the hook says which event it is
# What the hooks share; install-hooks writes it into each of them. It says where git-claim is, and ends the hook at once
# where gitcoord is not set up. Pure sh, no process: every commit in every repository with these hooks pays for it.
git_claim='' # install-hooks writes the path; without one, PATH decides

# The local settings are in the common directory, which linked work trees share.
dir=${GIT_DIR:-.git}
if [ -f "$dir" ]; then
    read -r _ dir <"$dir" # 'gitdir: <path>'
fi
common=${GIT_COMMON_DIR:-}
if [ -z "$common" ]; then
    common=$dir
    if [ -f "$dir/commondir" ]; then
        IFS= read -r common <"$dir/commondir"
        case $common in /*) ;; *) common=$dir/$common ;; esac
    fi
fi
[ -r "$common/config" ] || exit 0

# Set up: the section [gitcoord] has a root. A hook that sets `refs` needs the gated refs of that section too.
here='' root='' gates=''
# shellcheck disable=SC2162  # without -r the backslashes go, with which git writes a quote
while read line || [ -n "$line" ]; do
    case $line in
    '['[Gg][Ii][Tt][Cc][Oo][Oo][Rr][Dd]']'*) here=1 line=${line#*]} line=${line#"${line%%[! 	]*}"} ;;
    '['*)
        [ -z "$root" ] || [ -z "$gates" ] || break
        here=''
        ;;
    esac
    [ -n "$here" ] || continue
    case $line in
    [Rr][Oo][Oo][Tt][=\ \	]*) root=1 ;;
    [Gg][Aa][Tt][Ee][Rr][Ee][Ff][=\ \	]*)
        line=${line#*=} line=${line#"${line%%[! 	]*}"}
        case $line in '"'*'"') line=${line#?} line=${line%?} ;; esac
        gates="$gates$line
"
        ;;
    esac
    [ -z "$root" ] || [ -n "$refs" ] || break
done <"$common/config"
[ -n "$root" ] || exit 0

# Without git-claim: a gate is closed, what only helps is left out. `gate` starts it in place of this shell.
gate() {
    [ -x "$git_claim" ] || git_claim=$(command -v git-claim) || lacking
    exec "$git_claim" --gate "$event" "$@"
}

lacking() {
    [ -n "$closed" ] || exit 0
    echo "gitcoord: $event: could not judge this, so it is refused: git-claim is not where it was, nor on PATH" >&2
    echo "hint: install gitcoord again, in a clone of its repository: ./install.sh, or pipx install . ; the person who set it up here knows where it is from" >&2
    [ "$event" != reference-transaction ] ||
        echo "hint: a pull or merge that was refused here may have left its new files staged: do not commit them, and repeat it then" >&2
    echo "hint: to leave it for good, a person then runs in this repository: git coord repositories --uninstall-hooks, or that clone's ./install.sh --uninstall --hooks" >&2
    exit 1
}

# The git process that runs this hook, and when it began; the newest git runs hooks through a shell of its own. Sets `git_process`.
find_git() {
    git_process='' pid=$PPID
    for _ in 1 2 3; do
        { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
        # shellcheck disable=SC2086  # words, on purpose
        set -- ${stat##*) }
        case $stat in *' (git) '*) git_process="$pid ${20}" && return 0 ;; esac
        pid=$2
    done
    return 1
}

# pre-commit judged what this git process commits, a moment ago, and nothing stood against it (docs/adr/0043). Sets what the
# note says: `agent` (nothing for a person); where `refs` is set, `names` and `values` of the refs on which the answer rests, `head`
# and `change`.
noted() {
    find_git || return 1
    note=$common/gitcoord/judged
    [ "$dir" = "$common" ] || note=$note-${dir##*/}
    {
        read -r now _ </proc/uptime && read_note <"$note" && [ "$by" = "$git_process" ] && [ "${now%%.*}" -lt "$ends" ]
    } 2>/dev/null
}

read_note() {
    read -r by && read -r ends && read -r agent || return 1
    [ -n "$refs" ] || return 0
    read -r names && read -r values && read -r head || return 1
    change=''
    while IFS= read -r line; do
        change="$change$line
"
    done
}
