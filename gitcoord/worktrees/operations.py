"""Operations of git that take several commands: while one is under way, nobody else commits in that work tree."""

from __future__ import annotations

from gitcoord.base.errors import Refusal
from gitcoord.base.names import printable
from gitcoord.git.files import fingerprint, is_directory

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


def under_way(git_dir: str) -> str:
    """The operation under way in the work tree of this git directory; '' if none."""
    for name, operation in _SIGNS:
        if fingerprint(f"{git_dir}/{name}"):
            return operation
    # Between two picks of a series there is no other sign.
    return "cherry-pick or revert" if is_directory(f"{git_dir}/sequencer") else ""


def refuse_under_way(git_dir: str, owner: str = "") -> Refusal | None:
    operation = under_way(git_dir)
    if not operation:
        return None
    article = "an" if operation == "am" else "a"
    whose = f" of {printable(owner)}" if owner else ""
    end = "git bisect reset" if operation == "bisect" else f"git {operation.split()[0]} --continue, or --abort"
    return Refusal(
        "under-way",
        f"{article} {operation}{whose} is under way in this work tree",
        hints=(f"the one who began it ends it: {end}", "git status tells more"),
    )
