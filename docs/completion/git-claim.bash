# gitcoord: bash completion of 'git claim', called by git's own completion. Made by: python -m gitcoord.cli.docs
# shellcheck disable=SC2154  # cur, words and cword come from git's completion

# Where nothing is offered, bash goes on with file names.
_git_claim() {
    local found
    found=$(__git coord complete claim "${words[@]:__git_cmd_idx+1:cword-__git_cmd_idx}" | cut -f 1)
    case "$cur" in
    --*=*) __gitcomp_nl "$found" "" "${cur#*=}" ;;
    -*) __gitcomp "$found" ;;
    *) __gitcomp_nl "$found" ;;
    esac
}

if declare -F __git_complete >/dev/null; then
    __git_complete git-claim _git_claim
fi
