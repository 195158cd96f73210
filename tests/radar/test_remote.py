"""`git coord radar` in a clone: the work of other machines is seen once it was pushed and fetched, and that is said."""

from __future__ import annotations

from tests.ledger.remote.conftest import fleet
from tests.ledger.remote.support import Fleet

__all__ = ["fleet"]


def test_work_of_another_machine_is_seen_once_it_was_pushed(fleet: Fleet) -> None:
    one, two = fleet.joined()
    for machine, agent in ((one, "alice"), (two, "bob")):
        machine.git("switch", "-q", "-c", agent, "origin/main")
        machine.commit({"src/app.py": f"{agent}\n"})
        assert machine.run("git-coord", "start", agent=agent).code == 0
    seen = one.run("git-coord", "radar", agent="alice")
    assert seen.out == "no work under way conflicts\n" and "seen once it is pushed, and fetched here" in seen.err
    two.git("push", "-q", "origin", "bob")
    one.git("fetch", "-q")
    assert "src/app.py" in one.run("git-coord", "radar", agent="alice").out
