"""The starter policy that `git coord init --policy` writes: settings, rules and path classes, all commented."""

from pathlib import Path

from gitcoord.errors import UsageError
from gitcoord.names import agent_from_email
from gitcoord.store.repo import Repo

CONFIG = """# Settings of gitcoord for this project, in git-config syntax.

[gitcoord]
	# The first commit of this project's ledger: a ledger with another one is not ours.
	root = {root}
	# People who may take a live claim away and approve checkpoints, by agent name
	# ('git coord agents' shows the names). None listed: anybody at a terminal.
	;approver = {person}

# Things that are no files are claimed as @name. Undeclared ones have one unit and
# are open to everybody.
;[resource "deploy/production"]
;	ttl = 15m
;	write = {person}
;[resource "gpu"]
;	capacity = 2
"""

RULES = """# Rules for everybody who writes here

1. Claim before you change: `git claim <path>`. If it is held, do something else or wait; never work around it.
2. Claim as little as you need, and release it as soon as the work is committed: `git claim release <path>`.
3. Say why (`-m`), so that whoever is refused knows what you are doing.
4. Do not touch what another holds, also not to fix it "quickly".
5. Bring your copy up to date before you start and before you deploy.
6. When you stop in the middle, say what is done, what remains and what comes next.
7. Do not change these rules, the settings or the hooks on your own: ask a person.

## This project's own rules

"""

ATTRIBUTES = """# Paths that need a write claim before they are changed ('dir/**' for all below a directory).
.gitattributes gitcoord-claim
.gitcoord/** gitcoord-claim
# src/shared/** gitcoord-claim
"""
_MARK = "gitcoord-claim"


def write_starter(repo: Repo, root: str, email: str) -> list[str]:
    """Write what is not there yet; tells what was written. Existing lines are never changed."""
    if not repo.worktree:
        return []
    top = Path(repo.worktree)
    for name in (".gitcoord", ".gitcoord/config", ".gitcoord/rules.md", ".gitattributes"):
        if (top / name).is_symlink():
            raise UsageError(f"{name} is a symbolic link", hints=("gitcoord writes only to files of this repository",))
    written = []
    person = _person(email)
    for name, content in ((".gitcoord/config", CONFIG.format(root=root, person=person)), (".gitcoord/rules.md", RULES)):
        path = top / name
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
            written.append(name)
    attributes = top / ".gitattributes"
    old = attributes.read_bytes() if attributes.exists() else b""
    if _MARK.encode() not in old:
        gap = b"" if not old or old.endswith(b"\n") else b"\n"
        attributes.write_bytes(old + gap + ATTRIBUTES.encode())
        written.append(".gitattributes")
    return written


def _person(email: str) -> str:
    try:
        return agent_from_email(email)
    except UsageError:
        return "you_at_example.com"
