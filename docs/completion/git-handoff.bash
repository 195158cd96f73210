# gitcoord: bash completion of 'git handoff', called by git's own completion.
# tests/cli/test_completion.py holds that verbs and options agree with gitcoord/cli/table.py.
# shellcheck disable=SC2154  # cur, prev, words and cword come from git's completion

__gitcoord_handoff_verbs="new list show accept decline withdraw"

__gitcoord_handoff_options() {
    case "$1" in
    new) echo "--to= --task= --path= --state= --changed= --remaining= --next= --blockers= --assumptions= --file= --quiet --json" ;;
    list) echo "--all --json" ;;
    show) echo "--json" ;;
    accept) echo "--quiet --json" ;;
    decline | withdraw) echo "--reason= --json" ;;
    esac
}

# Those that wait.
__gitcoord_handoffs() {
    __git ls-tree --name-only refs/heads/gitcoord waiting/ 2>/dev/null | sed 's|^waiting/@||'
}

# Where nothing is offered, bash goes on with file names.
_git_handoff() {
    local verb="${words[__git_cmd_idx + 1]}"
    if [ "$cword" -eq $((__git_cmd_idx + 1)) ]; then
        __gitcomp "$__gitcoord_handoff_verbs"
        return
    fi
    local agents
    case "$prev,$cur" in
    *,--to=* | --to,*)
        agents=$(__git for-each-ref --format='%(refname:lstrip=3)' refs/gitcoord/sessions)
        __gitcomp_nl "$agents" "" "${cur#--to=}"
        return
        ;;
    *,--*) __gitcomp "$(__gitcoord_handoff_options "$verb")"; return ;;
    esac
    case "$verb" in
    show | accept | decline | withdraw) __gitcomp_nl "$(__gitcoord_handoffs)" ;;
    esac
}

if declare -F __git_complete >/dev/null; then
    __git_complete git-handoff _git_handoff
fi
