# gitcoord: bash completion of 'git coord', called by git's own completion.
# tests/cli/test_completion.py holds that commands and options agree with the command line.
# shellcheck disable=SC2154  # cur, prev, words and cword come from git's completion

__gitcoord_coord_commands="init run start stop status agents kill revive halt unhalt sweep log fsck resources demo version"

__gitcoord_coord_options() {
    case "$1" in
    init) echo "--policy --sync= --fold-case --no-fold-case --adopt --json" ;;
    run) echo "--as=" ;;
    start) echo "--join --json" ;;
    stop) echo "--keep --json" ;;
    kill | halt) echo "--reason= --json" ;;
    log) echo "--path= --agent= --kind= --number= --since= --json" ;;
    fsck) echo "--repair --json" ;;
    status | agents | revive | unhalt | sweep | resources | version) echo "--json" ;;
    esac
}

__gitcoord_agents() {
    __git for-each-ref --format='%(refname:lstrip=3)' refs/gitcoord/sessions
}

# Where nothing is offered, bash goes on with file names.
_git_coord() {
    local command="${words[__git_cmd_idx + 1]}"
    __git_has_doubledash && return
    if [ "$cword" -eq $((__git_cmd_idx + 1)) ]; then
        __gitcomp "$__gitcoord_coord_commands"
        return
    fi

    local kinds="init adopt claim release expire takeover disown start stop kill revive halt unhalt repair epoch"
    case "$prev,$cur" in
    *,--sync=*) __gitcomp_direct "$(__git_heads "" "${cur#--sync=}" " ")"; return ;;
    --sync,*) __gitcomp_direct "$(__git_heads "" "$cur" " ")"; return ;;
    *,--agent=*) __gitcomp_nl "$(__gitcoord_agents)" "" "${cur#--agent=}"; return ;;
    --agent,*) __gitcomp_nl "$(__gitcoord_agents)"; return ;;
    *,--kind=*) __gitcomp "$kinds" "" "${cur#--kind=}"; return ;;
    --kind,*) __gitcomp "$kinds"; return ;;
    *,--*) __gitcomp "$(__gitcoord_coord_options "$command")"; return ;;
    esac

    case "$command" in
    kill | revive) __gitcomp_nl "$(__gitcoord_agents)" ;;
    esac
}

if declare -F __git_complete >/dev/null; then
    __git_complete git-coord _git_coord
fi
