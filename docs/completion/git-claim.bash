# gitcoord: bash completion of 'git claim', called by git's own completion.
# tests/cli/test_completion.py holds that verbs and options agree with gitcoord/terminal/parser.py.
# shellcheck disable=SC2154  # cur, prev, words and cword come from git's completion

__gitcoord_claim_verbs="take release renew list show check disown takeover"

__gitcoord_claim_options() {
    case "$1" in
    take) echo "--mode= --ttl= --message= --task= --expect= --units= --wait= --nonce= --dry-run --quiet --json" ;;
    release) echo "--all --commit= --dirty --quiet --json" ;;
    renew) echo "--ttl= --quiet --json" ;;
    list) echo "--mine --all --json" ;;
    show) echo "--json" ;;
    check) echo "--quiet --json" ;;
    disown) echo "--reason= --json" ;;
    takeover) echo "--token= --force --reason= --json" ;;
    esac
}

# Where nothing is offered, bash goes on with file names.
_git_claim() {
    local first="${words[__git_cmd_idx + 1]}" verb=take
    case " $__gitcoord_claim_verbs " in
    *" $first "*) verb="$first" ;;
    esac
    __git_has_doubledash && return

    case "$prev,$cur" in
    *,--mode=*) __gitcomp "read intent write" "" "${cur#--mode=}"; return ;;
    --mode,*) __gitcomp "read intent write"; return ;;
    *,--ttl=* | *,--expect=* | *,--wait=*) __gitcomp "5m 30m 2h 1d" "" "${cur#*=}"; return ;;
    --ttl,* | --expect,* | --wait,*) __gitcomp "5m 30m 2h 1d"; return ;;
    *,--commit=*) __git_complete_refs --cur="${cur#--commit=}"; return ;;
    --commit,*) __git_complete_refs; return ;;
    *,--*) __gitcomp "$(__gitcoord_claim_options "$verb")"; return ;;
    esac

    if [ "$cword" -eq $((__git_cmd_idx + 1)) ]; then
        __gitcomp "$__gitcoord_claim_verbs"
    fi
}

if declare -F __git_complete >/dev/null; then
    __git_complete git-claim _git_claim
fi
