"""The file system and git's lists of files, as far as the meaning of a command depends on them. Bounded, and never an error."""

from __future__ import annotations

from gitcoord.git.files import is_folder, is_regular, is_symlink, lstat, read_if_file, scandir, stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from posix import stat_result

MAX_LISTED = 5000
MAX_NAMED = 65536  # bytes
MAX_TEXT = 1 << 18
MAX_ARCHIVE = 1 << 23
_SECONDS = 0.5  # for a git that lists files


class FileSystem:
    def listing(self, path: str) -> tuple[str, ...] | None:
        """The names in a directory; None where that is none, or has too many."""
        found: list[str] = []
        try:
            with scandir(path or ".") as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) > MAX_LISTED:
                        return None
        except (OSError, ValueError):
            return None
        return tuple(found)

    def look(self, path: str, *, follows: bool = False) -> stat_result | None:
        try:
            return stat(path) if follows else lstat(path)
        except (OSError, ValueError):
            return None

    def kind(self, path: str) -> str:
        """'d', 'f', or 'l' for a link; '' for anything else."""
        found = self.look(path)
        if found is None:
            return ""
        return "d" if is_folder(found) else "f" if is_regular(found) else "l" if is_symlink(found) else ""

    def is_dir(self, path: str) -> bool:
        found = self.look(path, follows=True)
        return found is not None and is_folder(found)

    def is_file(self, path: str) -> bool:
        found = self.look(path, follows=True)
        return found is not None and is_regular(found)

    def exists(self, path: str) -> bool:
        return self.look(path) is not None

    def text(self, path: str) -> str | None:
        """The content of a small file; None for any other."""
        data = read_if_file(path, MAX_TEXT + 1)
        return data.decode("utf-8", "replace") if data is not None and len(data) <= MAX_TEXT else None

    def top(self, path: str) -> str:
        """The top of the work tree that a directory lies in; '' where it lies in none."""
        while path and not self.exists(f"{path.rstrip('/')}/.git"):
            if path == "/":
                return ""
            path = path.rpartition("/")[0] or "/"
        return path

    def git_names(self, cwd: str, words: list[str]) -> list[str] | None:
        """The files that a listing of git prints, as it names them; None where it fails or takes long."""
        from gitcoord.base.errors import StoreError
        from gitcoord.git.commands.worktrees import listed

        if any("\0" in word or "\ud800" <= max(word, default="") <= "\udfff" for word in words):
            return None  # such a word cannot be given to a program
        try:
            answer = listed(cwd, words, _SECONDS)
        except (StoreError, UnicodeEncodeError):
            return None
        return answer.entries if not answer.code and len(answer.out) < MAX_NAMED else None

    def members(self, path: str) -> list[str] | None:
        """The names of the files in an archive; None where it is none that can be read, or a large one."""
        found = self.look(path, follows=True)
        if found is None or not is_regular(found) or found.st_size > MAX_ARCHIVE:
            return None
        from tarfile import TarError
        from tarfile import open as open_tar
        from zipfile import BadZipFile, ZipFile, is_zipfile

        try:
            if is_zipfile(path):
                with ZipFile(path) as archive:
                    return [name for name in archive.namelist() if not name.endswith("/")]
            with open_tar(path) as tar:
                return [member.name for member, _ in zip(tar, range(MAX_LISTED)) if not member.isdir()]
        except (OSError, EOFError, ValueError, TarError, BadZipFile, NotImplementedError):
            return None
