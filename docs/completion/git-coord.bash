# gitcoord: bash completion of 'git coord', called by git's own completion.
# tests/cli/test_completion.py holds that commands and options agree with the command line.
# shellcheck disable=SC2154  # cur, prev, words and cword come from git's completion

__gitcoord_coord_commands="init run start stop journal task dispatch status agents kill revive halt unhalt sweep log why watch once number rules fsck resources gate policy approvals approve deny role install-hooks uninstall-hooks setup teardown sync deploy deploys commit worktree server guard mcp demo version"

__gitcoord_coord_options() {
    case "$1" in
    init) echo "--policy --sync= --fold-case --no-fold-case --adopt --remote= --same --read-only --json" ;;
    run) echo "--as=" ;;
    start) echo "--brief --join --json" ;;
    stop) echo "--keep --json" ;;
    journal) echo "--agent= --grep= --json --message= --number= --path= --prose --quiet --since= --task=" ;;
    task) echo "--accept --all --attempts= --body= --branch= --dirty --expect= --from= --json --key= --line= --message= --mine --need= --next= --no-needs --no-paths --nonce= --not-done= --owner= --path= --priority= --quiet --reason= --result= --return --review= --role= --safe= --state= --title= --ttl= --unsafe --wait=" ;;
    dispatch) echo "--max= --as= --until-empty" ;;
    kill | halt) echo "--reason= --json" ;;
    log) echo "--path= --agent= --kind= --number= --since= --json" ;;
    why) echo "--number= --json" ;;
    watch) echo "--since= --kind= --path= --exec= --name= --interval= --until= --count= --json" ;;
    once) echo "--wait= --forget --reason= --list --json" ;;
    number) echo "--count= --peek --json" ;;
    rules) echo "--json" ;;
    fsck) echo "--repair --json" ;;
    gate) echo "--agent= --json" ;;
    policy) echo "--commit= --index --worktree --json" ;;
    approvals) echo "--all --diff --json" ;;
    approve) echo "--blob= --reason= --json" ;;
    deny) echo "--reason= --json" ;;
    role) echo "--clear --json" ;;
    worktree) echo "--agent= --path= --branch= --from= --discard-ignored --json" ;;
    server) echo "--account= --dry-run --json" ;;
    commit) echo "--message= --file= --trailer= --force --json" ;;
    install-hooks | uninstall-hooks) echo "--dry-run --json" ;;
    setup) echo "--yes --dry-run --tool= --no-tools --user --json" ;;
    teardown) echo "--yes --dry-run --force --user --json" ;;
    sync) echo "--pull --fetch --no-fetch --json" ;;
    deploy) echo "--commit= --no-verify-surface --json" ;;
    status | agents | revive | unhalt | sweep | resources | deploys | version) echo "--json" ;;
    esac
}

__gitcoord_agents() {
    __git for-each-ref --format='%(refname:lstrip=3)' refs/gitcoord/sessions
}

# The targets as far as the work tree names them.
__gitcoord_targets() {
    local top
    top=$(__git rev-parse --show-toplevel) &&
        git config -f "$top/.gitcoord/config" --name-only --get-regexp '^deploy\..*\.' 2>/dev/null |
        sed 's/^deploy\.//; s/\.[^.]*$//' | sort -u
}

# Where nothing is offered, bash goes on with file names.
_git_coord() {
    local command="${words[__git_cmd_idx + 1]}"
    __git_has_doubledash && return
    if [ "$cword" -eq $((__git_cmd_idx + 1)) ]; then
        __gitcomp "$__gitcoord_coord_commands"
        return
    fi

    local kinds="init adopt claim release expire takeover disown start stop kill revive halt unhalt repair epoch notice request answer role deploy task assign lapse revise finish journal handoff accept close number once done forget ack"
    local tools="claude codex gemini cursor copilot windsurf opencode"
    case "$prev,$cur" in
    *,--sync=*) __gitcomp_direct "$(__git_heads "" "${cur#--sync=}" " ")"; return ;;
    --sync,*) __gitcomp_direct "$(__git_heads "" "$cur" " ")"; return ;;
    *,--commit=*) __git_complete_refs --cur="${cur#--commit=}"; return ;;
    --commit,*) __git_complete_refs; return ;;
    *,--agent=*) __gitcomp_nl "$(__gitcoord_agents)" "" "${cur#--agent=}"; return ;;
    --agent,*) __gitcomp_nl "$(__gitcoord_agents)"; return ;;
    *,--from=*) __git_complete_refs --cur="${cur#--from=}"; return ;;
    --from,*) __git_complete_refs; return ;;
    *,--kind=*) __gitcomp "$kinds" "" "${cur#--kind=}"; return ;;
    --kind,*) __gitcomp "$kinds"; return ;;
    *,--tool=*) __gitcomp "$tools" "" "${cur#--tool=}"; return ;;
    --tool,*) __gitcomp "$tools"; return ;;
    *,--*) __gitcomp "$(__gitcoord_coord_options "$command")"; return ;;
    esac

    case "$command" in
    policy) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "explain check" ;;
    kill | revive | role) __gitcomp_nl "$(__gitcoord_agents)" ;;
    deploy) __gitcomp_nl "$(__gitcoord_targets)" ;;
    journal) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "add show" ;;
    rules) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "show ack who" ;;
    task) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "add list show take next update block unblock needs-human complete fail release review abandon reopen join schema" ;;
    worktree) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "add list done" ;;
    server) [ "$cword" -eq $((__git_cmd_idx + 2)) ] && __gitcomp "install status uninstall key" ;;
    commit) __git_complete_index_file "--others --modified --directory --no-empty-directory" ;;
    esac
}

if declare -F __git_complete >/dev/null; then
    __git_complete git-coord _git_coord
fi
