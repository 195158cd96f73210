"""The repository: git directory, common directory, work tree, prefix and settings.

The usual layouts are found by looking, as git does; everything unusual is left to `git rev-parse`. No GIT_DIR is set for
children: they find the same repository by themselves and make git's own safe.directory check on the way.
"""

from __future__ import annotations

from gitcoord.base.errors import UsageError
from gitcoord.git.files import getcwd, geteuid, is_folder, lstat, owner, read_file, same_file, stat
from gitcoord.git.process import GIT, Environ, clean_environ, run
from gitcoord.startup.namedtuple import NamedTuple

_UNUSUAL = (
    b"GIT_DIR", b"GIT_COMMON_DIR", b"GIT_WORK_TREE", b"GIT_CEILING_DIRECTORIES", b"GIT_DISCOVERY_ACROSS_FILESYSTEM",
)  # fmt: skip


class Repo(NamedTuple):
    git_dir: str
    common_dir: str
    worktree: str  # '' in a bare repository
    prefix: str  # the current directory below the work tree, '' at its top, else ending in '/'
    env: dict[bytes, bytes]

    @property
    def scratch(self) -> str:
        """Local notes: nothing that matters if deleted."""
        return self.common_dir + "/gitcoord"

    @property
    def is_ours(self) -> bool:
        """Return whether the repository is this user's own. Only git decides whether to trust any other one."""
        me = geteuid()
        return all(owner(path) == me for path in (self.git_dir, self.common_dir, self.worktree or self.git_dir))

    @property
    def objects(self) -> str:
        return self.common_dir + "/objects"


def discover(environ: Environ) -> Repo:
    env = clean_environ(environ)
    unusual = [name for name in _UNUSUAL if name in environ]
    if unusual in ([], [b"GIT_DIR"]):
        found = _look(env)
        if found is not None and not unusual:
            return found
        # A hook of git's: it may point at the very repository in which it runs.
        if found is not None and same_file(environ[b"GIT_DIR"].decode("utf-8", "surrogateescape"), found.git_dir):
            del env[b"GIT_DIR"]
            return found
    return _ask(env)


def _look(env: dict[bytes, bytes]) -> Repo | None:
    try:
        here = getcwd()
    except FileNotFoundError:
        raise UsageError("the current directory no longer exists") from None
    top = here
    while True:
        dot_git = top + "/.git" if top != "/" else "/.git"
        try:
            found = stat(dot_git)
        except OSError:
            if is_git_dir(top):
                return None  # bare, or inside a git directory: git knows the finer rules
            if top == "/":
                return None
            top = top.rpartition("/")[0] or "/"
            continue
        linked = not is_folder(found)
        git_dir = follow(dot_git, top) if linked else dot_git
        if git_dir is None or not is_git_dir(git_dir):
            return None
        if linked and not _read(git_dir + "/commondir"):
            return None  # a submodule, or a bare directory beside its work trees: git knows where its work tree is
        prefix = here[len(top) :].lstrip("/")
        common = common_of(git_dir)
        return Repo(git_dir, common, top, prefix + "/" if prefix else "", env)


def is_git_dir(path: str) -> bool:
    try:
        lstat(path + "/HEAD")
        if not _read(path + "/commondir"):
            stat(path + "/objects")
            stat(path + "/refs")
        return True
    except OSError:
        return False


def _read(path: str) -> str:
    return read_file(path, 8192).decode("utf-8", "surrogateescape").rstrip("\n")


def follow(dot_git: str, top: str) -> str | None:
    text = _read(dot_git)
    if not text.startswith("gitdir: "):
        return None
    target = text[len("gitdir: ") :]
    return target if target.startswith("/") else f"{top}/{target}"


def common_of(git_dir: str) -> str:
    text = _read(git_dir + "/commondir")
    if not text:
        return git_dir
    return text if text.startswith("/") else f"{git_dir}/{text}"


def _ask(env: dict[bytes, bytes]) -> Repo:
    argv = [*GIT, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--is-bare-repository"]
    code, out, complaint = run(argv, env)
    if code:
        raise UsageError(complaint or "not a git repository", hints=("run this inside a repository",))
    git_dir, common, bare = _values(out, argv[:3], argv[3:], env)
    if bare == "true":
        return Repo(git_dir, common, "", "", env)
    argv = [*GIT, "rev-parse", "--show-toplevel", "--show-prefix"]
    code, out, _ = run(argv, env)
    if code:
        return Repo(git_dir, common, "", "", env)  # inside a git directory: no work tree here
    top, prefix = _values(out, argv[:2], argv[2:], env)
    return Repo(git_dir, common, top, prefix, env)


def _values(out: bytes, argv: list[str], words: list[str], env: dict[bytes, bytes]) -> list[str]:
    """Git's answers to each word. It ends each answer with a line's end, and a path may have one in it."""
    lines = out.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if len(lines) == len(words):
        return lines
    return [run([*argv, word], env)[1].decode("utf-8", "surrogateescape").removesuffix("\n") for word in words]
