"""Operations of git that take several commands, such as a merge with conflicts: which one is under way in a work tree, and how it ends."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.base.names import printable
from gitcoord.git.files import fingerprint, is_directory, read_file
from gitcoord.git.host import isatty
from gitcoord.startup.namedtuple import NamedTuple

# The file that each operation keeps, in the order of the search: a rebase may stop within a cherry-pick of its own.
_SIGNS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)
# Where no editor can be shown.
_WITHOUT_EDITOR = {"merge": "git commit --no-edit", "rebase": "git -c core.editor=true rebase --continue"}
# Commands of hints that git, or gitcoord, refuses in the middle of an operation.
_WAIT = (
    "git merge ", "git rebase ", "git pull", "git switch ", "git revert ", "git cherry-pick ", "git stash",
    "coord sync --pull", "coord commit ",
)  # fmt: skip


class Operation(NamedTuple):
    """One that is under way, and the commands that finish it and that put everything back."""

    name: str
    go_on: str
    undo: str

    @property
    def words(self) -> str:
        return f"{'an' if self.name == 'am' else 'a'} {self.name}"

    @property
    def ways(self) -> tuple[str, ...]:
        """How it ends, as hints."""
        first = f"{self.words} is under way here, end it first: {self.go_on}"
        return (first, f"or put everything back: {self.undo}") if self.undo != self.go_on else (first,)


def operation(name: str) -> Operation:
    if name == "bisect":
        return Operation(name, "git bisect reset", "git bisect reset")
    go_on = f"git {name} --continue"
    return Operation(name, go_on if isatty(2) else _WITHOUT_EDITOR.get(name, go_on), f"git {name} --abort")


def under_way(git_dir: str) -> Operation | None:
    """The operation under way in the work tree of this git directory."""
    name = next((name for file, name in _SIGNS if fingerprint(f"{git_dir}/{file}")), "")
    if not name and is_directory(f"{git_dir}/sequencer"):  # between two picks of a series there is no other sign
        name = "revert" if read_file(f"{git_dir}/sequencer/todo").startswith(b"revert") else "cherry-pick"
    return operation(name) if name else None


def refuse_under_way(git_dir: str, owner: str = "", *then: str) -> Refusal | None:
    """`then`: hints for afterwards."""
    found = under_way(git_dir)
    if found is None:
        return None
    whose = f" of {printable(owner)}" if owner else ""
    hints = (f"the one who began it ends it: {found.go_on}", *found.ways[1:], *then, "git status tells more")
    return Refusal("under-way", f"{found.words}{whose} is under way in this work tree", hints=hints)


def hints_now(hints: tuple[str, ...], git_dir: str) -> tuple[str, ...]:
    """The hints, after how the operation under way ends, where one of them needs a work tree without one."""
    found = under_way(git_dir) if needs_none(hints) else None
    if found is None or any(hint.endswith(found.undo) for hint in hints):  # it is said already
        return hints
    return (*found.ways, *hints)


def needs_none(hints: tuple[str, ...]) -> bool:
    """Return whether one of the hints can be followed only where no operation is under way."""
    return any(words in hint and not hint.endswith((" --continue", " --abort")) for hint in hints for words in _WAIT)
