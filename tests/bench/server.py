"""Cost of the server's gate: pre-receive on one commit, on one event of the ledger, on a large push."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.bench.gates import Call
from tests.bench.measure import Result, Target, compare, interleave
from tests.bench.place import Place

_SHARED = "src/** gitcoord-claim\n"
_PRIVATE = ("refs/heads/gitcoord", "refs/claims/*:refs/claims/*", "refs/gitcoord/sessions/*:refs/gitcoord/sessions/*")


def gate(place: Place, rounds: int, *, commits: int = 20_000) -> list[Result]:
    return [*_small(place, rounds), *_large(place, max(3, rounds // 8), commits)]


def _server(place: Place, name: str) -> tuple[Path, Path]:
    """A clone whose agent holds 'src', and a bare repository with the same ledger behind the gate."""
    where = place.repository(name, ["src/a.txt", "free.txt"])
    (where / ".gitattributes").write_text(_SHARED)
    for words in (("add", "-A"), ("commit", "-q", "-m", "policy")):
        place.run(where, "git", *words)
    bare = where.parent / f"{name}.git"
    place.run(where, "git", "init", "-q", "--bare", "-b", "main", str(bare))
    place.run(where, "git", "remote", "add", "origin", str(bare))
    place.run(where, "git", "push", "-q", "origin", "HEAD:refs/heads/main")
    place.run(where, "git", "coord", "server", "install", str(bare))
    place.run(where, "git", "claim", "src")
    place.run(where, "git", "push", "-q", "--atomic", "origin", *_PRIVATE)
    return where, bare


def _agent(place: Place) -> dict[str, str]:
    return {"GIT_PUSH_OPTION_COUNT": "1", "GIT_PUSH_OPTION_0": f"agent={place.env['GITCOORD_AGENT']}", "GIT_DIR": "."}


def _hand_over(where: Path, bare: Path) -> None:
    """The objects are on the server, as in the quarantine of a push; no ref names them."""
    shutil.copytree(where / ".git/objects", bare / "objects", dirs_exist_ok=True)


class Hook(Call):
    """pre-receive as receive-pack calls it."""

    def __init__(self, place: Place, bare: Path, line: str) -> None:
        super().__init__(place, bare, (str(bare / "hooks/pre-receive"),), line.encode())
        self._env = {**place.env, **_agent(place)}


def _small(place: Place, rounds: int) -> list[Result]:
    where, bare = _server(place, "received")
    old = place.run(where, "git", "rev-parse", "HEAD").strip()
    (where / "src/a.txt").write_text("changed\n")
    place.run(where, "git", "commit", "-q", "-am", "one")
    new = place.run(where, "git", "rev-parse", "HEAD").strip()
    code = Hook(place, bare, f"{old} {new} refs/heads/main\n")
    _hand_over(where, bare)
    there, ledger = _server(place, "coordinated")
    before = place.run(there, "git", "rev-parse", "gitcoord").strip()
    place.run(there, "git", "claim", "free.txt")
    after = place.run(there, "git", "rev-parse", "gitcoord").strip()
    ref = place.run(there, "git", "for-each-ref", "--format=%(refname)", "refs/claims/path/free.txt").strip()
    _hand_over(there, ledger)
    event = Hook(place, ledger, f"{before} {after} refs/heads/gitcoord\n{'0' * 40} {after} {ref}\n")
    samples = interleave(rounds, {"code": code, "event": event, "python": lambda _: place.bare_python()})
    return [
        compare("receive", "pre-receive, 1 commit / python3 -I -S -c pass", samples, "code", "python", Target(8)),
        compare("receive-event", "pre-receive, 1 claim / python3 -I -S -c pass", samples, "event", "python", Target(8)),
    ]


def _large(place: Place, rounds: int, commits: int) -> list[Result]:
    where, bare = _server(place, "received-large")
    old = place.run(where, "git", "rev-parse", "HEAD").strip()
    stream = []
    for number in range(commits):
        stream.append(f"commit refs/heads/work\ncommitter a <a@b> {1_700_000_000 + number} +0000\ndata 1\nx\n")
        stream.append(f"from {old}\n" if not number else "")
        stream.append(f"M 100644 inline src/d{number % 500}/f{number % 7}.txt\ndata 6\n{number:06}\n")
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=where, env=place.env, input="".join(stream).encode(), check=True
    )
    new = place.run(where, "git", "rev-parse", "work").strip()
    _hand_over(where, bare)
    push = Hook(place, bare, f"{'0' * 40} {new} refs/heads/work\n")
    walk = Call(place, bare, ("git", "rev-list", "--objects", f"{old}..{new}"), git_dir=".")
    samples = interleave(rounds, {"push": push, "rev-list": walk})
    what = f"pre-receive, {commits:,} commits / git rev-list --objects"
    return [compare("receive-large", what, samples, "push", "rev-list", Target(4))]
