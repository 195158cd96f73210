"""A forged event with honest ones on top, and tools that rewrite every ref: acknowledged claims survive the repair."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.cli.support import Done
from tests.faults.world import LEDGER, TIP, World

pytestmark = pytest.mark.faults


def forge(world: World, kind: str, body: dict[str, Any], *, more: int = 1, without: str = "") -> int:
    """An event by hand on top of the ledger, that many numbers on; its tree may lack a directory. The tip follows."""
    seq = world.seqs()[-1] + more
    event = {**body, "v": 1, "kind": kind, "seq": seq, "agent": "eve", "at": 1900000000, "nonce": "forged", "part": 0}
    line = json.dumps(event, sort_keys=True, separators=(",", ":"))
    tree = ""
    if without:
        world.environ["GIT_INDEX_FILE"] = str(world.scrap / "index")
        world.git("read-tree", LEDGER)
        world.git("rm", "-q", "-r", "--cached", without)
        tree = world.git("write-tree")
        del world.environ["GIT_INDEX_FILE"]
    world.append(f"forged\n\n{line}\n\nSeq: {seq}\nKind: {kind}\n".encode(), tree=tree)
    return seq


TAKEOVER = {"space": "path", "path": "src/app.py", "holder": "alice", "token": 99, "reason": ""}
FORGERIES: dict[str, dict[str, Any]] = {
    "leaps": {"kind": "halt", "body": {"reason": ""}, "more": 1000},
    "undoes nothing": {"kind": "unhalt", "body": {}},
    "takes a claim away": {"kind": "takeover", "body": TAKEOVER, "without": "claims/path/src"},
}


def held(world: World) -> dict[str, tuple[str, int]]:
    return {claim["path"]: (claim["agent"], claim["token"]) for claim in world.observe()["claims"]}


def take(world: World, path: str, agent: str) -> int:
    done = world.claim("--json", path, agent=agent)
    assert done.code == 0, done
    return int(done.json["token"])


def repaired(world: World) -> Done:
    done = world.fsck(repair=True)
    assert done.code == 0 and done.json["clean"], done
    again = world.fsck(repair=True)
    assert again.json["repaired"] == [], again
    return done


@pytest.mark.parametrize("how", list(FORGERIES))
def test_claims_on_top_of_a_forged_event_are_kept(world: World, how: str) -> None:
    """Alice has held src/app.py since before it; bob and carol were granted claims after it, by honest commands."""
    before = held(world)
    forged = forge(world, **FORGERIES[how])
    docs = take(world, "docs", "bob")
    extra = take(world, "extra", "carol")
    assert world.claim("release", "extra", agent="carol").code == 0
    assert forged < docs < extra
    told = world.fsck()
    assert told.code == 1 and told.out.count("no legal event") == 1, told
    repaired(world)
    assert held(world) == {**before, "docs": ("bob", docs)}
    assert world.claim("check", "docs", agent="bob").code == 0
    assert take(world, "fresh", "carol") > max(world.seqs()[:-2])
    world.assert_works()


def test_what_a_forged_event_made_room_for_is_not_kept(world: World) -> None:
    """Bob was granted alice's path, since the forged tree did not show her: two may not have it. No number comes twice."""
    forge(world, **FORGERIES["takes a claim away"])
    stolen = take(world, "src/app.py", "bob")
    docs = take(world, "docs", "carol")
    repaired(world)
    assert {path: agent for path, (agent, _) in held(world).items()} == {"src/app.py": "alice", "docs": "carol"}
    assert take(world, "fresh", "dora") > max(stolen, docs)
    assert world.claim("check", "src/app.py", agent="bob").code == 1
    world.assert_works()


def test_nobody_writes_where_numbers_go_back(world: World) -> None:
    """A forged event with a low number, put on the branch alone: the tip is the witness. Nothing is granted on top of it."""
    tip = world.rev(TIP)
    last = world.seqs()[-1]
    forge(world, "halt", {"reason": ""}, more=-1)
    world.git("update-ref", TIP, tip)
    for words in (["docs"], ["check", "src/app.py"]):
        done = world.claim(*words, agent="alice")
        assert done.code == 4 and "fsck --repair" in done.err, done
    repaired(world)
    assert take(world, "docs", "bob") > last
    world.assert_works()


# --- filter-branch and the like

FILTERS = {
    "authors": "--env-filter 'export GIT_AUTHOR_NAME=new GIT_COMMITTER_NAME=new'",
    "messages": "--msg-filter 'cat; echo Signed-off-by: me'",
    "a file more": "--tree-filter 'echo >extra'",
    "a directory only": "--subdirectory-filter claims",
    "a directory less": "--prune-empty --index-filter 'git rm -r -q --cached --ignore-unmatch claims/path/docs'",
}


def rewrite(world: World, how: str) -> None:
    world.environ["FILTER_BRANCH_SQUELCH_WARNING"] = "1"
    world.git("-c", "core.hooksPath=/dev/null", "filter-branch", "-f", *shlex.split(FILTERS[how]), "--", "--all")


@pytest.mark.parametrize("how", list(FILTERS))
def test_a_rewritten_ledger(world: World, how: str) -> None:
    docs = take(world, "docs", "bob")
    before = held(world)
    rewrite(world, how)
    after = world.claim("late", "--json", agent="carol")  # some are noticed at once; on others people go on
    assert after.code in (0, 4), after
    told = [after.json["token"]] if after.code == 0 else []
    if told:
        take(world, "later", "carol")
        assert world.claim("release", "later", agent="carol").code == 0
    repaired(world)
    now = held(world)
    assert before.items() <= now.items(), "every live claim, with its token"
    assert now.keys() - before.keys() == ({"late"} if told else set())
    for agent, path in (("alice", "src/app.py"), ("bob", "docs")):
        assert world.claim("check", path, agent=agent).code == 0
    assert take(world, "fresh", "dora") > max([docs, *told])
    world.assert_works()


def test_rewritten_and_tidied(world: World) -> None:
    """The ledger as `git filter-repo` leaves it: no original, no reflog; the events are the same."""
    take(world, "docs", "bob")
    before = held(world)
    rewrite(world, "authors")
    for ref in world.refs():
        if ref.startswith("refs/original/"):
            world.git("update-ref", "-d", ref)
    world.git("reflog", "expire", "--expire=now", "--all")
    world.git("gc", "-q", "--prune=now")
    repaired(world)
    assert held(world) == before
    world.assert_works()
