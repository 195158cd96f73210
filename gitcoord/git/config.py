"""git's configuration as git reads it, cached between commands, because reading it takes a git process.

The cache is valid only while every configuration file, and every place where a new one could appear, is unchanged, and was unchanged
for a second before the cache was written (a file may change twice within one tick of its clock). With settings in environment
variables, or files that include others, git is asked each time.
"""

from __future__ import annotations

from gitcoord.base.errors import StoreError
from gitcoord.git.files import geteuid, owner, read_file, stamp, write_file
from gitcoord.git.process import GIT, Child, Environ
from gitcoord.git.repo import Repo

_SECOND = 1_000_000_000
# The settings that gitcoord reads. Others may hold secrets and are not cached.
_USED = (b"gitcoord.", b"user.", b"core.", b"extensions.", b"color.", b"lfs.storage")
# Variables that tell git where to look; all others of the kind are settings themselves.
_FILES = (b"GIT_CONFIG_GLOBAL", b"GIT_CONFIG_SYSTEM")
_WHERE = (*_FILES, b"GIT_CONFIG_NOSYSTEM")


class Settings:
    """Keys are lower case as `git config --list` prints them; of several values the last counts."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._last = dict(pairs)

    def every(self, key: str) -> list[str]:
        """All values of a setting that may have several."""
        return [value for name, value in self.pairs if name == key]

    def get(self, key: str, default: str = "") -> str:
        return self._last.get(key, default)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._last.get(key)
        return default if value is None else value.lower() not in ("false", "no", "off", "0", "")

    @property
    def oid_length(self) -> int:
        return 64 if self.get("extensions.objectformat").lower() == "sha256" else 40


def parse_settings(data: bytes) -> list[tuple[str, str]]:
    """Parse the output of `git config --list -z`."""
    pairs = []
    for entry in data.decode("utf-8", "surrogateescape").split("\0"):
        if entry:
            key, _, value = entry.partition("\n")
            pairs.append((key, value))
    return pairs


class SettingsReader:
    """Starts git only where nothing usable is remembered; `read` waits for it."""

    def __init__(self, repo: Repo, environ: Environ) -> None:
        # One memory for each work tree: they may have settings of their own.
        tree = "" if repo.git_dir == repo.common_dir else "-" + repo.git_dir.rpartition("/")[2]
        self._file = f"{repo.scratch}/config{tree}"
        # In a repository of another user the cache could hold settings that git would refuse.
        self._remembers = repo.is_ours and _only_tells_where(environ)
        head, _, listed = (read_file(self._file, 1 << 20) if self._remembers else b"").partition(b"\0")
        rows = [row.partition(" ") for row in head.decode("utf-8", "surrogateescape").split("\n") if row]
        marked = {place: mark for mark, _, place in rows}
        usual = _places(repo, environ)
        self._places = list(dict.fromkeys([*usual, *marked]))
        # The usual places stand first. With another HOME they differ, and the cache is not valid.
        self._listed = listed if list(marked)[: len(usual)] == usual and self._is_current(marked) else None
        self._child: Child | None = None
        if self._listed is None:
            self._marks = [stamp(place) or "-" for place in self._places]
            self._child = Child([*GIT, "config", "--list", "--show-origin", "-z"], repo.env)

    def _is_current(self, marked: dict[str, str]) -> bool:
        written = stamp(self._file).partition(":")[0]
        if not marked or not written.isdecimal() or owner(self._file) != geteuid():
            return False
        for place in self._places:
            mark = marked.get(place)
            if mark is None or mark != (stamp(place) or "-"):
                return False
            if mark != "-" and int(mark.partition(":")[0]) + _SECOND > int(written):
                return False
        return True

    def read(self) -> Settings:
        if self._listed is not None:
            return Settings(parse_settings(self._listed))
        assert self._child is not None
        out = self._child.rest()
        if self._child.wait():
            raise StoreError(f"git's settings cannot be read: {self._child.complaint()}")
        self._child.close()
        words = out.split(b"\0")
        listed = b"\0".join(filter(None, map(_used, words[1::2])))
        if self._remembers and not any(word.startswith(b"include") for word in words[1::2]):
            self._remember(words[:-1:2], listed)
        return Settings(parse_settings(listed))

    def _remember(self, origins: list[bytes], listed: bytes) -> None:
        """Write the cache. Only files whose stamp was taken before git read them count as unchanged."""
        for origin in set(origins):
            path = origin.removeprefix(b"file:").decode("utf-8", "surrogateescape")
            if path.startswith("/") and path not in self._places:
                self._places.append(path)
                self._marks.append("new")  # never matches, so that the next command notes it before it reads
        rows = "".join(f"{mark} {place}\n" for mark, place in zip(self._marks, self._places))
        try:
            write_file(self._file, rows.encode("utf-8", "surrogateescape") + b"\0" + listed)
        except OSError:
            pass  # not set up here, or not ours to write: git is asked again


def _used(entry: bytes) -> bytes:
    """The entry as it is cached; of a remote only that it is there: its address may hold a password."""
    key = entry.partition(b"\n")[0]
    if key.startswith(b"remote.") and key.endswith(b".url"):
        return key + b"\n"
    is_upstream = key.startswith(b"branch.") and key.endswith(b".remote")
    return entry if is_upstream or key.startswith(_USED) else b""


def _only_tells_where(environ: Environ) -> bool:
    """Return whether the variables about settings only name absolute paths of configuration files."""
    names = [name for name in environ if name.startswith(b"GIT_CONFIG")]
    return all(name in _WHERE and (name not in _FILES or environ[name].startswith(b"/")) for name in names)


def _places(repo: Repo, environ: Environ) -> list[str]:
    """The files in which git looks. Other files are added once git has named them."""
    home = environ.get(b"HOME", b"").decode("utf-8", "surrogateescape")
    xdg = environ.get(b"XDG_CONFIG_HOME", b"").decode("utf-8", "surrogateescape") or f"{home}/.config"
    own = [f"{repo.common_dir}/config", f"{repo.git_dir}/config.worktree"]
    # The values of the variables are part of the key, as if they were places: with other values the cache is not valid.
    said = {name: environ[name].decode("utf-8", "surrogateescape") for name in _WHERE if name in environ}
    words = [f"{name.decode()}={value}" for name, value in said.items()]
    return [
        *words,
        *own,
        f"{home}/.gitconfig",
        f"{xdg}/git/config",
        "/etc/gitconfig",
        *(said[n] for n in _FILES if n in said),
    ]
