"""install.sh with real installs into a HOME of its own: what it puts there, what it leaves alone, what it takes away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.support import World

ROOT = Path(__file__).parents[2]
INSTALLER = ROOT / "install.sh"
COMMANDS = ("git-claim", "git-coord", "git-handoff")
Result = subprocess.CompletedProcess[str]


class Home:
    """A HOME directory, and commands run in it with nothing else in the environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bin = path / ".local/bin"
        self.data = path / ".local/share/gitcoord"
        path.mkdir()
        self.env = {
            "HOME": str(path),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GITCOORD_AGENT": "alice",
            "GITCOORD_INSTALL_FROM": sysconfig.get_path("purelib"),
        }

    def run(self, *argv: str | Path, cwd: Path | None = None, **env: str) -> Result:
        return subprocess.run(
            argv,
            cwd=cwd or self.path,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def install(self, *words: str, **env: str) -> Result:
        return self.run(INSTALLER, *words, cwd=None, **env)

    def ok(self, *argv: str | Path, cwd: Path | None = None, **env: str) -> str:
        result = self.run(*argv, cwd=cwd, **env)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def repository(self, name: str = "repo") -> Path:
        repo = self.path.parent / name
        if not repo.exists():
            self.ok("git", "init", "-q", str(repo))
            (repo / "a.txt").write_text("a\n")
        return repo

    def trees(self) -> list[Path]:
        return sorted(self.data.glob("venv-*"))


def snapshot(top: Path) -> dict[str, tuple[int, int, str]]:
    """Every name below, with mode, time of change and target or content's size."""
    found = {}
    for path in sorted(top.rglob("*")):
        stat = path.lstat()
        what = os.readlink(path) if path.is_symlink() else str(stat.st_size if path.is_file() else "")
        found[str(path.relative_to(top))] = (stat.st_mode, stat.st_mtime_ns if path.is_file() else 0, what)
    return found


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


class Kept(Home):
    """One installation for all tests, put back before each that follows a change: an installation knows where it is."""

    changed = False
    told = ""

    def put_back(self) -> Home:
        if self.changed:
            for directory in self.path.parent.iterdir():
                if directory.name != "copy":
                    shutil.rmtree(directory)
            shutil.copytree(self.path.parent / "copy", self.path, symlinks=True)
            self.changed = False
        return self


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    made = Kept(tmp_path_factory.mktemp("kept") / "a home, with 'blanks'")
    made.told = made.ok(INSTALLER, PATH=os.environ["PATH"])
    shutil.copytree(made.path, made.path.parent / "copy", symlinks=True)
    return made


@pytest.fixture
def installed(kept: Kept) -> Home:
    """An installation for tests that only use it."""
    return kept.put_back()


@pytest.fixture
def ready(kept: Kept) -> Iterator[Home]:
    """An installation for tests that change it."""
    yield kept.put_back()
    kept.changed = True


# --- what it installs ---------------------------------------------------------------------------------------------


def test_installed_commands_work(installed: Home) -> None:
    repo = installed.repository()
    assert "claim" in installed.ok("git", "claim", "-h", cwd=repo)
    assert installed.run("git", "claim", "list", cwd=repo).returncode == 0
    installed.ok("git", "coord", "init", cwd=repo)
    assert "claimed a.txt" in installed.ok("git", "claim", "a.txt", cwd=repo)
    refused = installed.run("git", "claim", "a.txt", cwd=repo, GITCOORD_AGENT="bob")
    assert refused.returncode == 1 and "alice" in refused.stderr
    assert "alice" in installed.ok("git", "claim", cwd=repo)
    assert "a.txt" in installed.ok("git", "coord", "status", cwd=repo)
    said = [word for key in ("state", "changed", "remaining", "next") for word in (f"--{key}", f"the {key} of it")]
    assert "waits for bob" in installed.ok("git", "handoff", "new", "--to", "bob", *said, cwd=repo)
    assert "alice -> bob" in installed.ok("git", "handoff", cwd=repo)
    assert "h4" in installed.ok("git", "coord", "start", cwd=repo, GITCOORD_AGENT="bob")


def test_the_hooks_come_along(installed: Home) -> None:
    repo = installed.repository("hooked")
    installed.ok("git", "coord", "setup", cwd=repo)
    (hook,) = (repo / ".git/hooks").glob("*pre-commit")  # its name tells how git finds it
    assert "git_claim='" + f"{installed.bin}/git-claim".replace("'", "'\\''") + "'" in hook.read_text()
    installed.ok("git", "coord", "teardown", "--yes", cwd=repo, GITCOORD_AGENT="")
    assert not hook.exists()


def test_wrong_words_reach_the_full_command_line(installed: Home) -> None:
    result = installed.run("git", "claim", "take", "--no-such-option", cwd=installed.repository())
    assert result.returncode == 2 and "--no-such-option" in result.stderr


def test_git_claim_starts_on_the_bare_interpreter(installed: Home) -> None:
    first, *body = (installed.bin / "git-claim").read_text().splitlines()
    interpreter, _, flags = first.removeprefix("#!").partition(" ")
    assert flags == "-IS"
    assert Path(interpreter).read_bytes()[:2] != b"#!", "a version manager's script is slow"
    assert not Path(interpreter).is_symlink()
    (tree,) = installed.trees()
    assert (tree / "gitcoord.bundle").is_file() and any("gitcoord.bundle" in line for line in body)


def test_environment_of_python_is_ignored(installed: Home, tmp_path: Path) -> None:
    (tmp_path / "gitcoord").mkdir()
    (tmp_path / "gitcoord/__init__.py").write_text("raise SystemExit('the wrong gitcoord')\n")
    for words in (("git", "claim", "list"), ("git", "coord", "version")):
        installed.ok(*words, cwd=installed.repository(), PYTHONPATH=str(tmp_path), PYTHONHOME=str(tmp_path))


@pytest.mark.skipif(shutil.which("man") is None, reason="no man here")
@pytest.mark.parametrize("command", ["claim", "coord", "handoff"])
def test_help_shows_the_man_page(installed: Home, command: str) -> None:
    """Without MANPATH: man looks beside the bin directories on PATH."""
    shown = installed.ok("git", command, "--help", MANPAGER="cat", PAGER="cat", GIT_PAGER="cat", MANWIDTH="100")
    assert f"GIT-{command.upper()}(1)" in shown and "SYNOPSIS" in shown


def test_xdg_data_home_and_prefix(home: Home, tmp_path: Path) -> None:
    data = tmp_path / "elsewhere"
    home.ok(INSTALLER, XDG_DATA_HOME=str(data))
    assert (data / "man/man1/git-claim.1").exists() and (home.bin / "git-claim").exists()
    home.ok(INSTALLER, "--uninstall", XDG_DATA_HOME=str(data))
    assert snapshot(home.path) == {} and not data.exists()

    home.ok(INSTALLER, "--prefix", "here")
    assert {path.name for path in (home.path / "here/bin").iterdir()} == set(COMMANDS)
    assert home.ok(home.path / "here/bin/git-coord", "version").startswith("gitcoord ")
    home.ok(INSTALLER, "--prefix=here", "--uninstall")
    assert snapshot(home.path) == {}


def test_page_and_mcp_server_come_along_unless_they_are_left_out(home: Home, installed: Home, tmp_path: Path) -> None:
    home.ok(INSTALLER, "--without-mcp", "--without-page")
    home.ok("git", "init", "-q", tmp_path)
    for part in ("mcp", "page"):
        missing = home.run("git", "coord", part, cwd=tmp_path)
        assert missing.returncode == 2 and f"./install.sh --with-{part}" in missing.stderr
        assert home.run(INSTALLER, f"--with-{part}", "--dry-run").returncode == 0, "the default by its name"
    assert installed.ok("git", "coord", "mcp") == ""  # its client is gone at once
    assert "gitcoord is not set up" in installed.run("git", "coord", "page", "--no-open", cwd=tmp_path).stderr


def test_says_what_it_does_meanwhile_and_what_to_add_to_path(kept: Kept, ready: Home) -> None:
    told = kept.told
    assert f'export PATH="{ready.bin}:$PATH"' in told
    assert not {".profile", ".bashrc", ".zshrc"} & set(os.listdir(ready.path))
    stages = ["making a virtual environment", "copying gitcoord", "compiling the commands", "trying the commands"]
    assert [line.removesuffix(" ...") for line in told.splitlines()[1:5]] == stages
    assert "\033" not in told and "\ninstalled in " in told
    main, other = os.openpty()
    with open(main, "rb", buffering=0) as screen:
        done = subprocess.run([INSTALLER], env={**ready.env, "TERM": "xterm"}, stdout=other, check=True)
        os.close(other)
        shown = screen.read(1 << 16)
    assert done.returncode == 0 and b"export PATH" not in shown
    lines = shown.decode().split("\r\n")
    assert lines[1].count("\r\033[K") == len(stages) + 1 and lines[1].rpartition("\033[K")[2].startswith(
        "installed in "
    )


def test_interpreter_whose_name_no_first_line_can_hold(home: Home, tmp_path: Path) -> None:
    real = Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))
    moved = tmp_path / "a python" / ("x" * 120) / "bin" / real.name
    moved.parent.mkdir(parents=True)
    shutil.copy(real, moved)
    subprocess.run(["ln", "-s", real.parents[1] / "lib", moved.parents[1] / "lib"], check=True)
    if subprocess.run([moved, "-I", "-c", "import zlib"], capture_output=True).returncode:
        pytest.skip("this interpreter cannot be moved")
    home.ok(INSTALLER, PYTHON=str(moved))
    assert (home.bin / "git-claim").read_text().startswith("#!/bin/sh\n")
    repo = home.repository()
    home.ok("git", "coord", "init", cwd=repo)
    (repo / "it's a file").touch()
    assert "claimed it's a file" in home.ok("git", "claim", "it's a file", cwd=repo)


# --- again, and away ----------------------------------------------------------------------------------------------


def test_second_install_is_harmless(ready: Home) -> None:
    repo = ready.repository()
    ready.ok("git", "coord", "init", cwd=repo)
    ready.ok("git", "claim", "a.txt", cwd=repo)
    names = set(snapshot(ready.path / ".local/share/man")) | set(os.listdir(ready.bin))
    ready.ok(INSTALLER)
    assert names == set(snapshot(ready.path / ".local/share/man")) | set(os.listdir(ready.bin))
    assert "a.txt" in ready.ok("git", "claim", "list", cwd=repo)
    assert len(ready.trees()) == 2, "this one, and the one before for whoever still runs it"
    ready.ok(INSTALLER, "--uninstall")
    assert snapshot(ready.path) == {}


@pytest.mark.race
def test_a_claim_during_an_upgrade_sees_old_or_new(ready: Home) -> None:
    repo = ready.repository()
    ready.ok("git", "coord", "init", cwd=repo)
    upgrade = subprocess.Popen([INSTALLER], env=ready.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    rounds = 0
    while upgrade.poll() is None:
        ready.ok("git", "claim", "list", cwd=repo)
        ready.ok("git", "coord", "version", cwd=repo)
        rounds += 1
    _, complaint = upgrade.communicate()
    assert upgrade.returncode == 0, complaint
    assert rounds > 1


def test_uninstall_leaves_nothing_behind(ready: Home) -> None:
    ready.ok("git", "claim", "-h")
    ready.ok(INSTALLER, "--uninstall")
    assert snapshot(ready.path) == {}
    assert "not installed" in ready.ok(INSTALLER, "--uninstall")


def test_uninstall_leaves_what_is_not_its_own(ready: Home) -> None:
    mine = {ready.path / ".local/share/man/man1/mine.1": "mine\n", ready.bin / "git-mine": "#!/bin/sh\n"}
    changed = ready.bin / "git-handoff"
    mine[changed] = "#!/bin/sh\n# my own, better than gitcoord's\n"
    for path, text in mine.items():
        path.write_text(text)
    result = ready.run(INSTALLER, "--uninstall")
    assert result.returncode == 0 and str(changed) in result.stderr
    assert {path: path.read_text() for path in ready.path.rglob("*") if path.is_file()} == mine


@pytest.fixture
def hooked(ready: Home) -> tuple[Home, list[Path]]:
    """Two repositories that were set up, one of them without hooks by now, and one in which somebody else set up."""
    repositories = [ready.repository(name) for name in ("one", "two words", "left")]
    for repository in repositories:
        ready.ok("git", "config", "user.email", "ada@example.com", cwd=repository)
        ready.ok("git", "config", "user.name", "ada", cwd=repository)
        ready.ok("git", "add", "-A", cwd=repository)
        ready.ok("git", "commit", "-q", "-m", "one", cwd=repository)
        ready.ok("git", "coord", "setup", "--yes", "--no-tools", cwd=repository)
        ready.ok("git", "coord", "setup", "--yes", "--no-tools", cwd=repository)
    ready.ok("git", "coord", "uninstall-hooks", cwd=repositories.pop(), GITCOORD_AGENT="")
    return ready, repositories


def commits(home: Home, repository: Path) -> Result:
    return home.run("git", "commit", "-q", "--allow-empty", "-m", "x", cwd=repository, GITCOORD_AGENT="")


def test_uninstalling_takes_the_hooks_out_where_it_is_asked_to(hooked: tuple[Home, list[Path]]) -> None:
    home, repositories = hooked
    said = home.ok(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    for repository in repositories:
        assert f"took the hooks out of {repository}/.git\n" in said
        assert commits(home, repository).returncode == 0
    assert "left/.git" not in said and snapshot(home.path) == {}


def test_uninstalling_leaves_no_fetch_of_the_ledger(hooked: tuple[Home, list[Path]]) -> None:
    """Also where the hooks were taken out before; only where they stay it stays."""
    home, repositories = hooked
    places = [*repositories, repositories[0].parent / "left"]
    for place in places:
        home.ok("git", "config", "--add", "remote.origin.fetch", "+refs/heads/gitcoord:refs/heads/gitcoord", cwd=place)
    fetched = ("git", "config", "--get-all", "remote.origin.fetch")
    home.ok(INSTALLER, "--uninstall", "--keep-hooks")
    assert [home.run(*fetched, cwd=place).returncode for place in places] == [0, 0, 1]
    home.ok(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    assert [home.run(*fetched, cwd=place).returncode for place in places] == [1, 1, 1]


def test_uninstalling_asks_at_a_terminal(hooked: tuple[Home, list[Path]]) -> None:
    home, repositories = hooked
    world = World(repositories[0], made=True)
    env = {**home.env, "GITCOORD_AGENT": "", "XDG_DATA_HOME": str(home.data.parent)}
    with world.terminal("--uninstall", argv=[str(INSTALLER)], env=env) as shown:
        shown.until(lambda text: b"[Y/n]" in text)
        shown.type("y\n")
        done = shown.end()
    assert done.code == 0 and done.out.count("took the hooks out of") == len(repositories), done
    assert all(commits(home, repository).returncode == 0 for repository in repositories)


def test_hooks_that_stay_say_what_to_do_without_gitcoord(hooked: tuple[Home, list[Path]]) -> None:
    home, repositories = hooked
    assert "would offer to take the hooks out of" in home.ok(INSTALLER, "--uninstall", "--dry-run")
    result = home.run(INSTALLER, "--uninstall", "--keep-hooks")
    assert result.returncode == 0 and str(repositories[0]) in result.stdout and "--hooks" in result.stderr
    refused = commits(home, repositories[0])
    assert refused.returncode != 0 and "./install.sh --uninstall --hooks" in refused.stderr
    first, _, then = refused.stderr.partition("hint: to leave it for good, a person then runs in this repository: ")
    assert "install gitcoord again" in first and "git coord" in then
    assert "git coord" not in first and "git claim" not in first, "these commands are gone until then"
    home.ok(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    assert all(commits(home, repository).returncode == 0 for repository in repositories)
    assert not home.data.exists()
    assert home.ok(INSTALLER, "--uninstall", "--hooks").count("\n") == 1


def test_without_a_terminal_uninstalling_locks_nobody_out_unasked(hooked: tuple[Home, list[Path]]) -> None:
    home, repositories = hooked
    before = snapshot(home.path)
    result = home.run(INSTALLER, "--uninstall", GITCOORD_AGENT="")
    assert result.returncode == 1 and "--uninstall --hooks" in result.stderr and "--keep-hooks" in result.stderr
    assert snapshot(home.path) == before and commits(home, repositories[0]).returncode == 0


def test_an_agent_takes_no_hooks_out_by_uninstalling(hooked: tuple[Home, list[Path]]) -> None:
    home, repositories = hooked
    result = home.run(INSTALLER, "--uninstall", "--hooks")
    assert f"the hooks stay in {repositories[0]}" in result.stderr
    assert commits(home, repositories[0]).returncode != 0


def test_uninstalling_in_a_clone_that_was_moved_takes_its_hooks_out(hooked: tuple[Home, list[Path]]) -> None:
    """Also long after: its hooks stand there, and the list is gone."""
    home, repositories = hooked
    clone = repositories[0].rename(repositories[0].parent / "moved")
    result = home.run(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    assert f"  {repositories[0]}/.git\n" in result.stderr and "not there any more" in result.stderr
    refused = commits(home, clone)
    assert refused.returncode != 0 and "runs in this repository" in refused.stderr
    said = home.ok(INSTALLER, "--uninstall", "--hooks", cwd=clone, GITCOORD_AGENT="")
    assert f"took the hooks out of {clone}/.git\n" in said
    assert commits(home, clone).returncode == 0


HUSKY = 's=.husky/${0##*/}\n[ ! -f "$s" ] || sh -e "$s" "$@"\n'


def test_uninstalling_knows_where_a_hook_manager_asks_gitcoord(hooked: tuple[Home, list[Path]]) -> None:
    home = hooked[0]
    managed = home.repository("managed")
    for event in ("pre-commit", "pre-merge-commit", "pre-push"):
        wrapper = managed / ".husky/_" / event
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        wrapper.write_text("#!/bin/sh\n" + HUSKY)
        wrapper.chmod(0o755)
    (managed / ".husky/pre-commit").write_text("echo mine\n")
    for key, value in (("user.email", "a@b"), ("user.name", "ada"), ("core.hooksPath", ".husky/_")):
        home.ok("git", "config", key, value, cwd=managed)
    home.ok("git", "commit", "-q", "--allow-empty", "-m", "x", cwd=managed)
    pretended = {"PATH": f"{older_git(home)}:{home.env['PATH']}"}
    home.ok(home.bin / "git-coord", "setup", "--yes", "--no-tools", "--edit-hooks", cwd=managed, **pretended)
    text = (managed / ".husky/pre-commit").read_text()
    assert f"the hooks out of {managed}/.git\n" in home.ok(INSTALLER, "--uninstall", "--dry-run")
    said = home.ok(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    assert "gitcoord-hooks" in text and f"took the hooks out of {managed}/.git\n" in said
    assert (managed / ".husky/pre-commit").read_text() == "echo mine\n"
    assert commits(home, managed).returncode == 0


def older_git(home: Home) -> Path:
    """A directory with a git that says it is older: newer ones take hooks from their settings beside a hook manager."""
    tools = home.path.parent / "older"
    tools.mkdir()
    real = shutil.which("git")
    (tools / "git").write_text(
        f'#!/bin/sh\n[ "$1" != version ] || {{ echo git version 2.53.0; exit; }}\nexec {real} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    return tools


def test_uninstalling_names_the_servers_whose_gate_stays(ready: Home) -> None:
    server = ready.path.parent / "a server.git"
    ready.ok("git", "init", "-q", "--bare", str(server))
    ready.ok("git", "coord", "server", "install", str(server))
    assert f"would leave the gate in {server}," in ready.ok(INSTALLER, "--uninstall", "--dry-run")
    result = ready.run(INSTALLER, "--uninstall", "--hooks", GITCOORD_AGENT="")
    assert result.returncode == 0 and f"  {server}\n" in result.stderr, result
    assert "git coord server uninstall" in result.stderr and "took the hooks" not in result.stdout
    assert (server / "hooks/pre-receive").exists()
    ready.ok(INSTALLER)
    ready.ok("git", "coord", "server", "uninstall", str(server))
    result = ready.run(INSTALLER, "--uninstall")
    assert str(server) not in result.stderr + result.stdout and not ready.data.exists()


def test_dry_run_changes_nothing(home: Home, ready: Home) -> None:
    planned = home.ok(INSTALLER, "--dry-run")
    assert snapshot(home.path) == {}
    for command in COMMANDS:
        assert f"would write   {home.bin / command}\n" in planned
    before = snapshot(ready.path)
    assert f"would replace {ready.bin / 'git-claim'}\n" in ready.ok(INSTALLER, "--dry-run")
    assert f"would remove {ready.bin / 'git-claim'}\n" in ready.ok(INSTALLER, "--uninstall", "--dry-run")
    assert snapshot(ready.path) == before


# --- what it refuses ----------------------------------------------------------------------------------------------


def test_failed_install_leaves_everything_as_it_was(home: Home, ready: Home, tmp_path: Path) -> None:
    result = home.install(GITCOORD_INSTALL_FROM=str(tmp_path / "missing"))
    assert result.returncode != 0 and "nothing was installed or changed" in result.stderr
    assert snapshot(home.path) == {}
    before = snapshot(ready.path)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert ready.install(GITCOORD_INSTALL_FROM=str(empty)).returncode != 0, "no typer: the new commands cannot start"
    after = snapshot(ready.path)
    manifest = ".local/share/gitcoord/manifest"
    assert {name: after[name] for name in before if name != manifest} == {n: before[n] for n in before if n != manifest}
    assert set(after) == set(before)
    ready.ok("git", "coord", "version")
    ready.ok(INSTALLER, "--uninstall")
    assert snapshot(ready.path) == {}


def test_a_foreign_command_is_not_overwritten(home: Home) -> None:
    home.bin.mkdir(parents=True)
    (home.bin / "git-claim").write_text("#!/bin/sh\necho somebody else's\n")
    before = snapshot(home.path)
    result = home.install()
    assert result.returncode == 1 and str(home.bin / "git-claim") in result.stderr
    assert snapshot(home.path) == before


def test_one_installer_at_a_time(ready: Home) -> None:
    lock = ready.data / "install.lock"
    lock.symlink_to(str(os.getpid()))
    result = ready.install()
    assert result.returncode == 1 and f"process {os.getpid()}" in result.stderr
    gone = subprocess.Popen(["true"])
    gone.wait()
    lock.unlink()
    lock.symlink_to(str(gone.pid))
    ready.ok(INSTALLER)
    assert not lock.is_symlink()


Fake = Callable[[str, str], str]


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Put a command before the real ones; gives the PATH."""

    def make(name: str, body: str) -> str:
        directory = tmp_path / "fake"
        directory.mkdir(exist_ok=True)
        (directory / name).write_text(f"#!/bin/sh\n{body}\n")
        (directory / name).chmod(0o755)
        return f"{directory}:{os.environ['PATH']}"

    return make


def test_old_git_is_named(home: Home, fake: Fake) -> None:
    result = home.install(PATH=fake("git", "echo git version 2.37.9"))
    assert result.returncode == 1 and "git 2.37 is too old" in result.stderr
    result = home.install(PATH=fake("git", "exit 127"))
    assert result.returncode == 1 and "git is not installed" in result.stderr


def test_old_python_is_named(home: Home, fake: Fake) -> None:
    for minor in range(11, 20):
        fake(f"python3.{minor}", "exit 1")
    path = fake("python3", "exit 1")
    result = home.install(PATH=path, PYTHON="")
    assert result.returncode == 1 and "no Python 3.11" in result.stderr
    result = home.install(PATH=path, PYTHON="python3")
    assert result.returncode == 1 and "PYTHON=python3" in result.stderr
    assert snapshot(home.path) == {}


def test_next_python_is_tried(home: Home, fake: Fake) -> None:
    fake("python3", "exit 1")
    path = fake("python3.11", f"exec '{sys.executable}' \"$@\"")
    assert "would install" in home.ok(INSTALLER, "--dry-run", PATH=path, PYTHON="")


def test_missing_venv_module_names_the_package(home: Home) -> None:
    """Debian splits ensurepip off. The real interpreter is asked, so only the question can be changed here."""
    question = "\"$PY\" -I -c 'import venv, ensurepip'"
    script = INSTALLER.read_text()
    assert question in script
    copy = home.path / "install.sh"
    copy.write_text(script.replace(question, "false"))
    (home.path / "gitcoord").symlink_to(ROOT / "gitcoord")
    result = home.run("sh", copy, GITCOORD_INSTALL_FROM="")
    assert result.returncode == 1
    assert f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in result.stderr


def test_usage(home: Home) -> None:
    assert "usage: ./install.sh" in home.ok(INSTALLER, "--help")
    result = home.install("--no-such-option")
    assert result.returncode == 2 and "usage:" in result.stderr
    assert home.install("--prefix").returncode != 0
    assert snapshot(home.path) == {}


def test_home_is_needed(home: Home) -> None:
    result = home.install(HOME="")
    assert result.returncode == 1 and "--prefix" in result.stderr


# --- the whole way ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(os.environ.get("PIP_NO_INDEX")), reason="PIP_NO_INDEX is set: no package index")
def test_install_with_pip_into_an_empty_home(home: Home) -> None:
    home.env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    home.env.pop("GITCOORD_INSTALL_FROM")
    home.ok(INSTALLER)
    (tree,) = home.trees()
    assert (tree / "share/man/man1/git-claim.1").exists()
    assert not list(tree.glob("lib/python*/site-packages/tests"))
    repo = home.repository()
    home.ok("git", "coord", "init", cwd=repo)
    assert "claimed a.txt" in home.ok("git", "claim", "a.txt", cwd=repo)
    home.ok(INSTALLER, "--uninstall")
    assert not (home.path / ".local").exists()  # what pip and its helpers leave beside it is theirs


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shell_scripts_are_clean() -> None:
    scripts = [
        INSTALLER,
        ROOT / "tests/checkout.sh",
        ROOT / ".ci/run",
        *sorted((ROOT / "docs/completion").glob("*.bash")),
    ]
    scripts += [
        path for path in sorted((ROOT / "githooks").rglob("*")) if path.is_file() and path.read_bytes()[:2] == b"#!"
    ]
    result = subprocess.run(["shellcheck", "-x", "-P", "SCRIPTDIR", *map(str, scripts)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
