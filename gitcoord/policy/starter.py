"""The starter policy that `git coord init --policy` writes: settings, rules and attributes, with comments."""

from __future__ import annotations

from pathlib import Path

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.git.commands.objects import staged_blob
from gitcoord.git.commands.settings import get_setting, set_in_file
from gitcoord.git.repo import Repo
from gitcoord.policy.survey import unmark

CONFIG = """# Settings of gitcoord for this project, in git-config syntax.

[gitcoord]
	# The first commit of this project's ledger: a ledger with another one is not ours.
	root = {root}
{authority}	# People who may take a live claim away and approve checkpoints, by agent name
	# ('git coord agents' shows the names). None listed: anybody at a terminal.
	;approver = you_at_example.com

# The guard in front of agent tools (docs/guard.md). autoclaim: a free shared path is claimed for
# the agent at the moment in which it writes there. Off: it has to claim the path itself.
[guard]
	autoclaim = true
	# The answer to a shell command whose effects are unknown: allow, warn, ask or deny.
	;unknown = allow
	# Places outside this repository that agents neither read nor write, or not without a person's word:
	;denyRead = ~/.ssh
	;denyRead = ~/.aws
	;denyRead = ~/.gnupg
	;askRead = ~/notes
	# The answer when a tool's action could not be judged: deny or warn.
	;onError = deny

# The stage of each rule: monitor (only recorded), warn, enforce. A rule that is
# not named here is enforced. To begin gently:
;[rollout]
;	unclaimed = warn
;	lineage = warn

# Roles: what an agent is here to do. 'git coord role <agent> <role>' gives one;
# 'gitcoord-writers=<role>,<role>' in .gitattributes says which roles write a path. A
# read-only role writes below its scratch path alone, but may land what others released.
;[gitcoord]
;	role = code
[role "orchestrator"]
	readonly = true
	scratch = .scratch/{{agent}}
[role "code"]
	readonly = false
[role "test"]
	readonly = false
[role "debug"]
	readonly = true
	scratch = .scratch/{{agent}}
[role "verify"]
	readonly = true
	scratch = .scratch/{{agent}}
[role "explore"]
	readonly = true
	scratch = .scratch/{{agent}}

# Files of the project that 'git coord start' shows to everybody, besides the rules:
;[start]
;	state = docs/state.md
;	decisions = docs/decisions.md
;	lessons = docs/lessons.md

# The decision behind a rule, named by every refusal:
;[rule "lineage"]
;	record = docs/decisions/lineage.md

# Resources are claimed as @name. Undeclared ones have one unit and
# are open to everybody.
;[resource "deploy/production"]
;	ttl = 15m
;	write = you_at_example.com
;[resource "gpu"]
;	capacity = 2

# Numbers that are given once each, above those in the names of files: 'git coord number migrations'.
;[sequence "migrations"]
;	pattern = migrations/[0-9]*_*.sql
;	width = 4

# Landing: 'git coord land' brings a branch onto trunk after this check of exactly what will land,
# so many at the same time as there are lanes. 'renumber': files of a sequence get their numbers when
# they land, instead of by 'git coord number'.
;[land]
;	check = make test
;	lanes = 4
;	renumber = migrations

# An agent that pushes must have read .gitcoord/rules.md as it is now: 'git coord rules ack'.
;[rules]
;	ack = true

# Checks beyond these: a line in the changelog, a record of decisions, nothing unfinished on
# deploys, no text that gives agents instructions, no unfinished work without a handoff, no loops,
# a budget; and commands of your own (0: pass, 1: block, 2: warn). [rollout] has their stages.
;[validator "changelog"]
;	path = src/**
;[validator "decision"]
;	path = src/core/**
;	records = docs/adr
;[validator "placeholders"]
;	path = site/**
;[validator "injection"]
;	enabled = true
;[validator "handoff"]
;	enabled = true
;[validator "spiral"]
;	enabled = true
;[validator "budget"]
;	calls = 2000
;	time = 8h
;[validator "lint"]
;	command = make -s lint
;	on = commit

# Where this project is deployed to: 'git coord deploy production -- <command>' refuses
# a stale copy, and runs 'verify' against the public surface afterwards.
;[deploy "production"]
;	remote = origin
;	ref = refs/heads/production
;	tag = v*
;	verify = curl -fsS https://example.com/health
;	timeout = 10m
"""

AUTHORITY = """	# The remote that decides: every clone joins its ledger with 'git coord setup'.
	authority = {remote}
"""

RULES = """# Rules for everybody who writes here

1. Claim before you change what is shared: `git claim <path>`. If it is held, wait for it (`--wait`, `--queue`) or do something else; never work around it.
2. Read before you act: `git coord start` shows the project's state, decisions and lessons, and what you were doing.
3. Begin on trunk as it is now, as `git coord start` shows, and bring your copy up to date before you deploy: `git coord sync --pull`.
4. Verify through the real public surface before you call it done; a passing test is not a user who succeeds.
5. Report what was not done too: what you left out, skipped or only assumed.
6. Put no placeholder into production: nothing that only looks finished.
7. An interruption abandons nothing: release what has landed, and hand the rest over with `git handoff new`.

## This project's own rules

<!-- 8. Your rule, and the failure that it closes. -->
<!-- 9. -->
<!-- 10. -->
"""

ATTRIBUTES = """# Paths that need a write claim before they are changed ('dir/**' for all below a directory).
.gitattributes gitcoord-claim
.gitcoord/** gitcoord-claim
# src/shared/** gitcoord-claim
# These need it only when they land, and are edited freely on work branches:
# CHANGELOG.md gitcoord-claim=landing
# Nobody changes these, or only with a person's approval, or with a warning:
# secrets/** gitcoord-guard=block
# billing/** gitcoord-guard=checkpoint
# Agents' tools do not read these, or not without a person's word:
# secrets/** gitcoord-read=deny
# personal/** gitcoord-read=ask
# Only these roles write here:
# tests/** gitcoord-writers=test,code
"""
_MARK = "gitcoord-claim"
FILES = (".gitcoord/config", ".gitcoord/rules.md", ".gitattributes")


def missing_starter(repo: Repo) -> list[str]:
    """The files that `write_starter` would write. A symbolic link in their place is refused."""
    if not repo.worktree:
        return []
    top = Path(repo.worktree)
    for name in (".gitcoord", *FILES):
        if (top / name).is_symlink():
            raise UsageError(f"{name} is a symbolic link", hints=("gitcoord writes only to files of this repository",))
    missing = [name for name in FILES[:2] if not (top / name).exists()]
    return missing if _MARK.encode() in _content(top / FILES[2]) else [*missing, FILES[2]]


def write_starter(repo: Repo, root: str, remote: str = "") -> list[str]:
    """Write the missing files and lines; gives the names of the files. Existing lines are never changed."""
    written = missing_starter(repo)
    for name in written:
        path = Path(repo.worktree, name)
        path.parent.mkdir(exist_ok=True)
        old = _content(path)
        # Exactly one line break between, so that `remove_starter` finds the old content again, to the byte.
        path.write_bytes(old + (b"\n" if old else b"") + _starter(root, remote)[name])
    return written


def unnamed(repo: Repo, root: str, remote: str) -> dict[str, str]:
    """The settings of an existing policy that name another ledger than this root, or another authority than this remote, with
    the values that they should have. '' says nothing."""
    file = Path(repo.worktree, FILES[0])
    if not repo.worktree or not file.exists() or file.is_symlink():
        return {}
    wanted = {"gitcoord.root": root, "gitcoord.authority": remote}
    return {
        key: value
        for key, value in wanted.items()
        if value and get_setting(repo.env, key, file=str(file)).text.strip() != value
    }


def name_ledger(repo: Repo, root: str, remote: str) -> list[str]:
    """Write these settings; gives the names of the files that changed. git edits the file: everything else in it stays."""
    settings = unnamed(repo, root, remote)
    for key, value in settings.items():
        answer = set_in_file(repo.env, key, value, file=str(Path(repo.worktree, FILES[0])))
        answer.require(f"git cannot write {key} to {FILES[0]}", StoreError)
    return [FILES[0]] if settings else []


def remove_starter(repo: Repo, root: str, remote: str = "", *, dry_run: bool) -> tuple[dict[str, bytes], list[str]]:
    """Remove starter files that were neither committed nor changed. Gives them with their content, and the others."""
    removed: dict[str, bytes] = {}
    left: list[str] = []
    if not repo.worktree:
        return removed, left
    top = Path(repo.worktree)
    for name, content in _starter(root, remote).items():
        path = top / name
        before = None if path.is_symlink() else _content_before(_content(path), content)
        staged, known, _ = staged_blob(repo.env, name)
        tracked = staged == 0
        if before is None or (tracked and content in known):
            left += [name] if _is_policy(path) else []
            continue
        removed[name] = before
        if dry_run:
            continue
        if before or tracked:
            path.write_bytes(before)
        else:
            path.unlink()
    if not dry_run and (top / ".gitcoord").is_dir() and not any((top / ".gitcoord").iterdir()):
        (top / ".gitcoord").rmdir()
    return removed, left


def removal_commands(repo: Repo, root: str, remote: str, left: list[str]) -> list[str]:
    """The commands, to be run in the top directory, that remove what `remove_starter` left, and commit that."""
    top, starter = Path(repo.worktree), _starter(root, remote)
    mixed = [name for name in left if name == FILES[2] and _content_before(_content(top / name), starter[name]) != b""]
    whole = [name for name in left if name not in mixed]
    tracked = [name for name in left if staged_blob(repo.env, name).code == 0]
    return [
        *([f"rm -- {' '.join(whole)}"] if whole else []),
        *(f"sed -i.old '/gitcoord/d' {name} && rm {name}.old" for name in mixed),
        *([f'git commit -m "remove gitcoord" -- {" ".join(tracked)}'] if tracked else []),
    ]


def _content_before(content: bytes, starter: bytes) -> bytes | None:
    """The content before `write_starter`, and before suggested lines were added; None where the file was changed since."""
    content = unmark(content)
    if content == starter:
        return b""
    return content[: -len(starter) - 1] if content.endswith(b"\n" + starter) else None


def _is_policy(path: Path) -> bool:
    """Return whether the file exists and has to do with gitcoord."""
    return path.exists() and (path.name != ".gitattributes" or _MARK.encode() in _content(path))


def _starter(root: str, remote: str) -> dict[str, bytes]:
    """The files: the same in every clone that uses this ledger, so that two that wrote them merge without a conflict."""
    authority = AUTHORITY.format(remote=remote) if remote else ""
    config = CONFIG.format(root=root, authority=authority)
    return dict(zip(FILES, (text.encode() for text in (config, RULES, ATTRIBUTES))))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
