# shellcheck shell=sh disable=SC2154,SC2164 # install.sh, which reads this, sets the variables and `set -e`
# `./install.sh --test`: prepare .venv in this checkout and run the whole suite.

test_checkout() {
    cd "$SOURCE"
    check_git
    find_python
    has_venv || apt_get "$("$PY" -I -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" || true
    check_venv
    test_tools
    test_venv
    newer_git=''
    if is_newer git; then :; elif fetch_git; then newer_git=1; else
        warn "no git 2.54 or later here, nor from Debian, so some tests are skipped"
    fi
    wipe
    failed='' tested=''
    # Each process of pytest, and many a child of a test, would compile every module again.
    unset PYTHONDONTWRITEBYTECODE
    step "ruff check" ruff check .
    step "ruff format" ruff format --check .
    .venv/bin/mypy >.venv/mypy.log 2>&1 & # beside pytest, since it uses one processor
    mypy=$!
    if [ -n "$soak" ]; then
        GITCOORD_SOAK=1
        export GITCOORD_SOAK
        set -- --timeout=7200 "$@"
    fi
    [ -n "$soak" ] || test_place
    # Once, while mypy runs: workers that begin at the same time would each compile all of them.
    [ -d tests/base/__pycache__ ] || .venv/bin/pytest --collect-only -q >/dev/null 2>&1 || true
    # More workers than processors, since many tests wait for something; a word of your own (-n 0, say) counts more.
    set -- -n "$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || say 2) * 2 + 2))" --dist worksteal "$@"
    if [ -z "$newer_git" ]; then
        step "pytest" pytest "$@"
        mypy_says
    else
        step "pytest" pytest -m "not newer_git" "$@"
        mypy_says
        PATH=$GIT/bin:$PATH
        GITCOORD_REQUIRE_GIT=1
        export PATH GITCOORD_REQUIRE_GIT
        step "pytest with $(git version)" pytest -m "newer_git or both_gits" "$@"
    fi
    [ -n "$tested" ] || failed="$failed [no test was chosen]"
    [ -z "$failed" ] || die "failed in $(seconds_since "$began"):$failed"
    say "" "all passed in $(seconds_since "$began")"
}

# Where the tests' repositories lie: in memory where there is room, since the disk is what most of them would wait for. A long
# run keeps to the disk, and so does whoever sets TMPDIR.
test_place() {
    [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] || return 0
    room=$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')
    [ "${room:-0}" -gt 4000000 ] && place=$(mktemp -d /dev/shm/gc.XXXXXX) || return 0
    trap 'rm -rf "$place"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    chmod 711 "$place" # servers that run as somebody else get through
    printf '#!/bin/sh\n' >"$place/try"
    chmod +x "$place/try"
    if "$place/try" 2>/dev/null; then
        TMPDIR=$place
        export TMPDIR
    fi
}

step() {
    say "" "== $1"
    title=$1 step_began=$(date +%s) status=0
    shift
    command=$1
    shift
    ".venv/bin/$command" "$@" || status=$?
    say "== $title: $(seconds_since "$step_began")"
    # pytest says 5 where the words after --test choose no test of this run; of another one they may.
    case $command$status in
    pytest5) return ;;
    pytest*) tested=1 ;;
    esac
    [ "$status" -eq 0 ] || failed="$failed [$title]"
}

mypy_says() {
    wait "$mypy" || failed="$failed [mypy]"
    say "" "== mypy (beside pytest)"
    cat .venv/mypy.log
}

# What some tests need beyond git and Python. Where it cannot be had those tests are skipped, so say so.
test_tools() {
    missing=$(missing_tools)
    # shellcheck disable=SC2086  # a list of words, here and below
    [ -z "$missing" ] || apt_get $missing || true
    missing=$(missing_servers)
    # shellcheck disable=SC2086
    [ -z "$missing" ] || install_servers $missing || true
    missing=$(missing_tools && missing_servers)
    [ -z "$missing" ] || warn "not here, so some tests are skipped:" "$missing"
    fetch_axe || warn "axe-core could not be had from npm, so the page's contrast and labels are not tested"
}

# Checks contrast and labels of the page in the browser; a package of npm, of which only a file is used.
fetch_axe() {
    [ ! -f "$SOURCE/.browser/node_modules/axe-core/axe.min.js" ] || return 0
    command -v npm >/dev/null 2>&1 || apt_get nodejs npm || return 1
    bound=''
    command -v timeout >/dev/null 2>&1 && bound='timeout 120'
    progress "fetching axe-core from npm"
    # Within its directory, since --prefix would also hide the machine's own npmrc.
    mkdir -p "$SOURCE/.browser" && echo '{}' >"$SOURCE/.browser/package.json"
    # shellcheck disable=SC2086  # two words or none
    (cd "$SOURCE/.browser" && $bound npm install --silent --no-audit --no-fund --ignore-scripts axe-core@4) >/dev/null 2>&1
}

missing_tools() {
    command -v git-lfs >/dev/null 2>&1 || git lfs version >/dev/null 2>&1 || say git-lfs
    command -v strace >/dev/null 2>&1 || say strace
    command -v tmux >/dev/null 2>&1 || say tmux
    command -v man >/dev/null 2>&1 || say man-db
    command -v shellcheck >/dev/null 2>&1 || say shellcheck
    command -v zsh >/dev/null 2>&1 || say zsh
    command -v chromium >/dev/null 2>&1 || say chromium
    command -v chromedriver >/dev/null 2>&1 || say chromium-driver
    any_of /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 || say libfaketime
    any_of /usr/share/bash-completion/bash_completion /opt/homebrew/etc/bash_completion || say bash-completion
}

missing_servers() {
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
    command -v ssh >/dev/null 2>&1 || say openssh-client
    command -v sshd >/dev/null 2>&1 || say openssh-server
    command -v nginx >/dev/null 2>&1 || say nginx
    # With the first of them the second does not ask for systemd.
    command -v fcgiwrap >/dev/null 2>&1 || say spawn-fcgi fcgiwrap
    command -v gitolite >/dev/null 2>&1 || say gitolite3
    command -v ip >/dev/null 2>&1 || say iproute2
}

# A server's package starts it at once and again at each boot; the tests want only the program. Before a start Debian asks
# POLICY, and 101 means no. A subshell, for its trap.
POLICY=/usr/sbin/policy-rc.d
install_servers() (
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || exit 1
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    # One of ours that still allows a start was left behind by an install.sh that was killed.
    if ! forbids_start && grep -qs "gitcoord's install.sh" "$POLICY"; then rm -f "$POLICY"; fi
    if [ ! -e "$POLICY" ]; then
        trap 'rm -f "$POLICY" "$POLICY.$$"' EXIT
        # It speaks only for this process, so that it does no harm when it is left behind.
        printf '%s\n' '#!/bin/sh' "# from gitcoord's install.sh" "kill -0 $$ 2>/dev/null && exit 101" 'exit 0' >"$POLICY.$$" &&
            chmod 755 "$POLICY.$$" && mv "$POLICY.$$" "$POLICY" || exit 1
    fi
    forbids_start || { wipe && say "$POLICY lets servers start, so these are not installed: $*" && exit 1; }
    apt_get "$@" || true
    [ -d /run/systemd/system ] || exit 0
    for package; do
        case $package in
        openssh-server) systemctl disable ssh.service ssh.socket ;;
        nginx) systemctl disable nginx.service ;;
        fcgiwrap) systemctl disable fcgiwrap.service fcgiwrap.socket ;;
        esac >/dev/null 2>&1 || true
    done
)

forbids_start() {
    status=0
    "$POLICY" nginx start >/dev/null 2>&1 || status=$?
    [ "$status" -eq 101 ]
}

# As root, where there is apt. Bounded, and one at a time if all at once fails.
apt_get() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    progress "installing with apt-get: $*"
    apt install "$@" && return
    apt update || true
    apt install "$@" && return
    for package; do apt install "$package" || true; done
}

apt() {
    bound=''
    command -v timeout >/dev/null 2>&1 && bound='timeout 300'
    # dpkg wants the sbin directories.
    # shellcheck disable=SC2086  # two words or none
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive $bound apt-get -qq -y \
        -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60 \
        -o APT::Install-Recommends=false -o Dpkg::Use-Pty=0 "$@" </dev/null >/dev/null 2>&1
}

# .venv of this checkout, made anew when the interpreter or the requirements changed.
test_venv() {
    wanted="$PY $SOURCE $(checksum pyproject.toml)"
    stamp=.venv/gitcoord-stamp
    if [ -d .venv ] && [ ! -f "$stamp" ]; then
        die "$SOURCE/.venv is not install.sh's" "move it away"
    fi
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then return; fi
    rm -rf .venv
    mkdir .venv
    say unfinished >"$stamp"
    make_venv .venv "what the tests need, in .venv" --editable '.[test]'
    say "$wanted" >"$stamp"
}

# The first git that takes hooks from its settings. It knows reftable too.
is_newer() {
    "$1" version 2>/dev/null | {
        IFS=' .' read -r _ _ major minor _
        [ "${major:-0}" -gt 2 ] || { [ "${major:-0}" -eq 2 ] && [ "${minor:-0}" -ge 54 ]; }
    }
}

# Debian's newest git, in a directory of this checkout. It is downloaded and unpacked with the C library that it needs;
# nothing is installed, and no root is needed. The archive is this machine's own one.
GIT=$SOURCE/.newer-git
fetch_git() {
    ! is_newer "$GIT/bin/git" || return 0
    rm -rf "$GIT"
    progress "fetching a newer git from Debian"
    if unpack_git >/dev/null 2>&1 && is_newer "$GIT/bin/git"; then return 0; fi
    rm -rf "$GIT"
    return 1
}

unpack_git() (
    # shellcheck source=/dev/null
    . /etc/os-release
    keys=/usr/share/keyrings/debian-archive-keyring.gpg
    archive=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/$VERSION_CODENAME/InRelease'.*|\1|p" | head -n 1)
    [ "$ID" = debian ] && [ -n "$archive" ] && [ -f "$keys" ] || exit 1
    apt=$GIT/apt core=$GIT/root/usr/lib/git-core
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$GIT/root" "$GIT/bin" && cd "$apt" || exit 1
    say "deb [signed-by=$keys] $archive unstable main" >sources.list
    : >status
    set -- -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State="$apt" \
        -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt" -o APT::Sandbox::User=
    apt "$@" update && apt "$@" download git libc6 libgcc-s1 libstdc++6 patchelf || exit 1
    for package in *.deb; do dpkg -x "$package" "$GIT/root" || exit 1; done
    cd "$GIT" && rm -rf "$apt" || exit 1
    libraries=$(dirname "$GIT"/root/usr/lib/*/libc.so.6)
    loader=$(say "$libraries"/ld-linux*.so.*)
    # patchelf says no to scripts, which is right.
    find "$core" -type f -perm -u+x -exec "$loader" --library-path "$libraries" "$GIT/root/usr/bin/patchelf" \
        --set-interpreter "$loader" --set-rpath "$libraries" {} \;
    # Each program is started by a script that names the directory of the others, or it would start the older git's.
    shim start "GIT_EXEC_PATH=$(quote "$GIT/bin") exec $(quote "$core")/\"\${0##*/}\" \"\$@\""
    chmod +x start
    for file in "$core"/*; do
        if [ -f "$file" ] && [ -x "$file" ]; then ln -s ../start "bin/${file##*/}"; else ln -s "$file" bin/; fi
    done
)
