# shellcheck shell=sh disable=SC2034,SC2154  # the hook says which event it is, and uses what is set here
# What the server's hooks share; `git coord server install` writes it into each of them. Pure sh, no process.
git_claim='' # the installer writes the path; without one, PATH decides
dir=${GIT_DIR:-.}

# The note that pre-receive left for this push: named after receive-pack, which is above this hook, perhaps not directly.
find_note() {
    pid=$PPID note=''
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        [ "$pid" -gt 1 ] || return 1
        if [ -f "$dir/gitcoord/inflight/refs.$pid" ]; then
            note=$dir/gitcoord/inflight/refs.$pid
            return 0
        fi
        above=''
        while read -r key value _; do
            case $key in PPid:) above=$value && break ;; esac
        done 2>/dev/null <"/proc/$pid/status"
        pid=${above:-0}
    done
    return 1
}
