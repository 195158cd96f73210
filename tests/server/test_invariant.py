"""The checker of the invariant finds what is wrong: otherwise all tests that rely on it prove nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.invariant import MAIN, Told, _conflicts, check, replay
from tests.server.realm import Realm
from tests.server.servers import Served


@pytest.mark.parametrize("server", ["file"], indirect=True)
def test_each_thing_that_is_wrong_is_found(served: Served, tmp_path: Path) -> None:
    realm = Realm(served, tmp_path, accounts=False)
    one = realm.clone("one")

    def problems() -> str:
        return "\n".join(check(realm.bare, realm.env, realm.told))

    assert one.take("shared/a", "alice").code == 0
    one.work("shared/a", "alice")
    assert one.push(option="alice").code == 0 and one.release("shared/a", "alice").code == 0
    assert one.take("shared/b", "alice").code == 0
    assert problems() == ""
    realm.told.append(Told("granted", "bob", "shared/a", 99))
    assert "was told, and is not in the ledger" in problems()
    realm.told.pop()
    ref = "refs/claims/path/shared/b/@alice"
    realm.git("-c", "core.hooksPath=/dev/null", "update-ref", "-d", ref)
    assert f"differ: ['{ref}']" in problems()
    # The same commit lands once more, after the release.
    new = one.git("rev-parse", "HEAD").strip()
    old = one.git("rev-parse", "HEAD^").strip()
    with open(realm.bare / "moves", "a") as log:
        log.writelines(f"{state} {old} {new} {MAIN}\n" for state in ("prepared", "committed"))
    assert "a stale write landed" in problems()


def test_claims_that_exclude_each_other() -> None:
    rows = [
        {"kind": "claim", "agent": agent, "mode": "write", "seq": seq, "items": [["path", path]]}
        for seq, (agent, path) in enumerate((("alice", "src"), ("bob", "src/app.py")), 1)
    ]
    assert [len(_conflicts(live)) for live in replay(rows)] == [0, 0, 1]
    ended = {"kind": "expire", "agent": "bob", "seq": 3, "claims": [{"space": "path", "path": "src", "agent": "alice"}]}
    assert not _conflicts(replay([*rows, ended])[-1])
