"""Commands that change no file of a project by what they are: HARMLESS only look or talk, BUILDERS make what is derived.

A builder or test runner runs the project's own code, which could do anything; it counts as neither write nor unknown,
since everybody runs it all the time and its output is not what people edit. A shared file that it changes is judged when
that is committed.
"""

from __future__ import annotations

HARMLESS = frozenset(
    """
: } true false test [ sleep wait jobs bg fg disown times alias unalias ulimit umask exit return break continue logout history fc bind
date cal uptime uname hostname whoami id groups who w last users tty stty locale nproc arch lscpu lsblk lsof lsusb
lspci free df du ps top htop pgrep pidof pstree vmstat iostat iotop sar dmesg journalctl sysctl getconf getent
ping ping6 traceroute dig nslookup host whois ss netstat ip ifconfig route arp nc ncat netcat telnet ssh mosh ssh-add ssh-agent
man info apropos whatis help tldr clear reset tput seq yes factor expr bc dc numfmt tr cowsay figlet printenv
tree eza exa lsd stat namei mount findmnt exiftool mediainfo identify ffprobe
docker-compose kubectl helm minikube kind oc aws gcloud az heroku flyctl vercel netlify
psql mysql mysqldump redis-cli mongo mongosh sqlcmd clickhouse-client
systemctl service launchctl brew apt apt-get apt-cache dpkg dpkg-query rpm yum dnf apk pacman zypper snap flatpak port
open xdg-open pbcopy pbpaste xclip xsel notify-send say afplay logger write wall mail sendmail
nvidia-smi rocm-smi lshw inxi neofetch fastfetch sw_vers
command_not_found_handle compgen complete compopt caller suspend dirs
shellcheck hadolint yamllint markdownlint codespell vale proselint tokei cloc scc loc ctags etags
actionlint gitleaks trufflehog semgrep bandit safety trivy grype snyk nm ldd objdump readelf size addr2line c++filt
git-lfs tailscale ngrok
""".split()  # noqa: SIM905
)

BUILDERS = frozenset(
    """
pytest py.test unittest mypy pyright pylint flake8 pydocstyle vulture coverage
tsc tsx ts-node jest vitest mocha ava karma cypress playwright webpack rollup vite esbuild parcel next nuxt astro
turbo nx lerna swc babel rspec rake phpunit phpstan psalm
ninja meson scons autoconf automake autoreconf configure ctest bear ccache sccache javac java kotlinc scala scalac sbt lein clj
rustc ghc cabal stack runghc swift swiftc xcodebuild xcrun zig nim crystal erl rebar3 elixir iex
ld as ar ranlib strip ldconfig protoc flatc thrift golangci-lint staticcheck govulncheck dlv
sphinx-build mkdocs jekyll hugo eleventy pdflatex xelatex lualatex latexmk bibtex
docker podman conda mamba micromamba virtualenv asdf mise rustup nvm fnm volta pyenv rbenv gem twine
manage.py uvicorn gunicorn flask django-admin celery rails foreman honcho pm2 nodemon
""".split()  # noqa: SIM905
)
