# shellcheck shell=sh disable=SC2034,SC2154  # the hook says which event it is, and uses what is set here
# What the server's hooks share; `git coord server install` writes it into each of them. Pure sh, no process.
git_claim='' # the installer writes the path; without one, PATH decides
dir=${GIT_DIR:-}
[ -n "$dir" ] || { [ -d .git ] && dir=.git || dir=.; }
if [ -f "$dir/commondir" ]; then # a linked work tree on the server
    IFS= read -r common <"$dir/commondir"
    case $common in /*) dir=$common ;; *) dir=$dir/$common ;; esac
fi

# The push that is landing here: pre-receive left notes named after receive-pack, which is above this hook, perhaps not
# directly. Sets `pid`.
find_push() {
    pid=$PPID
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        [ "$pid" -gt 1 ] || return 1
        for entry in "$dir"/gitcoord/inflight/*."$pid"; do
            [ ! -f "$entry" ] || return 0
        done
        above=''
        while read -r key value _; do
            case $key in PPid:) above=$value && break ;; esac
        done 2>/dev/null <"/proc/$pid/status"
        pid=${above:-0}
    done
    return 1
}

# The refs that this push was judged to move together; sets `note`.
find_note() {
    find_push || return 1
    note=$dir/gitcoord/inflight/refs.$pid
    [ -f "$note" ]
}
