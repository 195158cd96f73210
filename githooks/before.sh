# shellcheck shell=sh disable=SC2154  # the hook says which event it is
# The hook that was here before gitcoord runs first: same arguments, same input; if it fails, so does this one.
before=$0.before-gitcoord
if [ -f "$before" ] && [ -x "$before" ]; then
    case $event/${1:-} in
    pre-push/* | pre-receive/* | reference-transaction/prepared)
        input=$(cat) # both read it
        if [ -n "$input" ]; then
            "$before" "$@" <<END || exit
$input
END
            exec <<END
$input
END
        else
            "$before" "$@" </dev/null || exit
        fi
        ;;
    post-receive/*) ;; # runs it when its own work is done
    reference-transaction/*) exec "$before" "$@" ;; # the other states are none of gitcoord's
    *) "$before" "$@" || exit ;;
    esac
fi
