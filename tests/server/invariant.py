"""Invariants of a server after any sequence of events, checked with plain git alone: no rule is shared with gitcoord.

No two live claims exclude each other, at no moment of the ledger; Seq has no gaps; claim refs are what the ledger says; what
was acknowledged is there; and no push of code landed when its agent's claim was gone before it began to land.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.races.history import Row, overlap, read_ledger

LEDGER, MAIN = "refs/heads/gitcoord", "refs/heads/main"
# A reference-transaction hook that notes what moves when. The lines of one state come in the order in which they happened.
WATCH = """case $1 in prepared | committed) ;; *) exit 0 ;; esac
while read -r old new ref; do
    case $ref in refs/heads/gitcoord | refs/heads/main) echo "$1 $old $new $ref" >>"${GIT_DIR:-.}/moves" ;; esac
done
"""


class Held(NamedTuple):
    mode: str
    token: int


Live = dict[tuple[str, str], Held]  # by path (a resource with '@' before it) and agent


class Told(NamedTuple):
    """An answer that somebody got: a grant's or a release's."""

    kind: str
    agent: str
    path: str
    token: int


def replay(events: Iterable[Row]) -> list[Live]:
    """The live claims after each event, the first entry before any."""
    states: list[Live] = [{}]
    for event in events:
        live = dict(states[-1])
        kind = event["kind"]
        if kind == "claim":
            live.update({(_word(*item), event["agent"]): Held(event["mode"], event["seq"]) for item in event["items"]})
        elif kind == "release":
            ended = [(row["space"], row["path"], event["agent"]) for row in event["released"]]
            _end(live, ended)
        elif kind == "expire":
            _end(live, [(row["space"], row["path"], row["agent"]) for row in event["claims"]])
        elif kind == "takeover":
            _end(live, [(event["space"], event["path"], event["holder"])])
        elif kind in ("kill", "stop"):
            _end(live, [(space, name, event["target"]) for space, name in event["freed"]])
        states.append(live)
    return states


def _end(live: Live, rows: list[tuple[str, str, str]]) -> None:
    for space, name, agent in rows:
        live.pop((_word(space, name), agent), None)


def _word(space: str, name: str) -> str:
    return name if space == "path" else f"@{space}:{name}"


def check(bare: Path, env: Mapping[str, str], told: Iterable[Told] = ()) -> list[str]:
    """Everything that is wrong, in words."""
    events = read_ledger(bare, env)
    states = replay(events)
    problems = []
    if [event["seq"] for event in events] != list(range(1, len(events) + 1)):
        problems.append(f"Seq has gaps: {[event['seq'] for event in events]}")
    nonces = [(event["nonce"], event["part"]) for event in events]
    problems += [f"event {nonce} is there twice" for nonce in {n for n in nonces if nonces.count(n) > 1}]
    for seq, live in enumerate(states):
        problems += [f"after event {seq}: {words}" for words in _conflicts(live)]
    problems += _refs(bare, env, states[-1])
    problems += _lost(events, told)
    problems += _stale(bare, env, states)
    return problems


def _conflicts(live: Live) -> list[str]:
    rows = sorted(live.items())
    return [
        f"{one} and {other} exclude each other"
        for place, ((one, a), held) in enumerate(rows)
        for (other, b), mine in rows[place + 1 :]
        if a != b and "write" in (held.mode, mine.mode) and overlap(one, other)
    ]


def _refs(bare: Path, env: Mapping[str, str], live: Live) -> list[str]:
    """Claim refs name the events that granted what is held; paths here need no encoding."""
    out = _git(bare, env, "for-each-ref", "--format=%(refname) %(contents:subject)%(contents:body)", "refs/claims/path")
    found = {line.split(" ")[0] for line in out.splitlines() if line.startswith("refs/")}
    due = {f"refs/claims/path/{path}/@{agent}" for path, agent in live if path[0] != "@"}
    return [f"claim refs and ledger differ: {sorted(found ^ due)}"] if found != due else []


def _lost(events: list[Row], told: Iterable[Told]) -> list[str]:
    granted = {
        (event["agent"], _word(*item), event["seq"]) for event in events if event["kind"] == "claim"
        for item in event["items"]
    }  # fmt: skip
    released = {
        (event["agent"], _word(row["space"], row["path"]), row["token"])
        for event in events
        if event["kind"] == "release"
        for row in event["released"]
    }
    return [
        f"was told, and is not in the ledger: {one}"
        for one in told
        if (one.agent, one.path, one.token) not in (granted if one.kind == "granted" else released)
    ]


# --- stale writes -------------------------------------------------------------------------------------------------


def _stale(bare: Path, env: Mapping[str, str], states: list[Live]) -> list[str]:
    """Each landing of shared files on main, held against the ledger as it was from its beginning to its end.

    A ledger that had moved (committed) before main's transaction was prepared binds it for sure.
    """
    log = bare / "moves"
    rows = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    seqs = {
        words[0]: int(words[1])
        for words in (line.split() for line in _git(bare, env, "log", "--format=%H %(trailers:key=Seq,valueonly,separator=)", LEDGER, "--").splitlines())
        if len(words) == 2
    }  # fmt: skip
    problems = []
    for end, (state, old, new, ref) in enumerate(rows):
        if ref != MAIN or state != "committed" or not old.strip("0") or not new.strip("0"):
            continue
        begin = max(place for place, row in enumerate(rows[:end]) if row == ["prepared", old, new, MAIN])
        least = _highest(seqs, rows[:begin], "committed")
        most = max(least, _highest(seqs, rows[:end], "prepared"))
        for commit in _git(bare, env, "rev-list", f"{old}..{new}").split():
            problems += _unheld(bare, env, commit, states[least : most + 1])
    return problems


def _highest(seqs: dict[str, int], rows: list[list[str]], state: str) -> int:
    return max((seqs.get(new, 0) for was, _, new, ref in rows if ref == LEDGER and was == state), default=0)


def _unheld(bare: Path, env: Mapping[str, str], commit: str, states: list[Live]) -> list[str]:
    """The shared files of a commit that its agent did not hold in any of these states."""
    agent = _git(bare, env, "log", "-1", "--format=%(trailers:key=Agent,valueonly,separator=)", commit).strip()
    files = _git(bare, env, "diff-tree", "--no-commit-id", "--name-only", "-r", commit).split()
    return [
        f"a stale write landed: {commit[:12]} of '{agent}' changes {file}"
        for file in files
        if file.startswith("shared/")
        and not any(
            who == agent and held.mode == "write" and overlap(path, file)
            for live in states
            for (path, who), held in live.items()
        )
    ]


def _git(bare: Path, env: Mapping[str, str], *words: str) -> str:
    return subprocess.run(["git", "-C", str(bare), *words], env=env, check=True, capture_output=True, text=True).stdout
