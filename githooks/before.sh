# shellcheck shell=sh disable=SC2154  # the hook says which event it is
# The hook that was here before gitcoord runs first: same arguments, same input; if it fails, so does this one.
before=$0.before-gitcoord
if [ -f "$before" ] && [ -x "$before" ]; then
    # A hook of husky 4 or older knows by its own name which one it is. It overwrites hooks that have its mark in one piece.
    { read -r _ && read -r mark; } <"$before" 2>/dev/null || mark=''
    earlier() {
        case $mark in
        '#'?'husky') sh -c '. "$0.before-gitcoord"' "$0" "$@" ;;
        *) "$before" "$@" ;;
        esac
    }
    case $event/${1:-} in
    pre-push/* | pre-receive/* | reference-transaction/prepared)
        input=$(cat) # both read it
        if [ -n "$input" ]; then
            earlier "$@" <<END || exit
$input
END
            exec <<END
$input
END
        else
            earlier "$@" </dev/null || exit
        fi
        ;;
    post-receive/*) ;; # runs it when its own work is done
    reference-transaction/*) exec "$before" "$@" ;; # the other states are none of gitcoord's
    *) earlier "$@" || exit ;;
    esac
fi
