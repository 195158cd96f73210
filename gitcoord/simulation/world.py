"""The world that rules ask, as one simulated machine answers it."""

from __future__ import annotations

from gitcoord.ledger.sessions import Seen
from gitcoord.ledger.world import Resource, World
from gitcoord.policy.model import Policy
from gitcoord.policy.parse import parse_policy
from gitcoord.server.retrace import Retraced
from gitcoord.tasks.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.ledger.sessions import Heartbeat
    from gitcoord.simulation.machine import Machine, View

RESOURCES = {"gpu": Resource(capacity=3)}
_POLICY = parse_policy(())


class SimulatedWorld(World):
    """A machine's clock, and the heartbeats of one view. No work tree has uncommitted changes, and no commit is ever made."""

    def __init__(self, machine: Machine, view: View) -> None:
        super().__init__(machine.wall(), machine.mono(), machine.name, "origin" if machine.is_remote else "")
        self._machine = machine
        self._beats = view.beats
        self.asked: dict[str, None] = {}  # the agents whose heartbeats a rule has read

    def heartbeat(self, agent: str) -> Heartbeat | None:
        self.asked[agent] = None
        return self._beats.get(agent)

    def first_seen(self, agent: str) -> Seen | None:
        beat = self.heartbeat(agent)
        oid = beat.oid if beat is not None else ""
        known = self._machine.sightings.get(agent)
        if known is None or known.oid != oid:
            known = self._machine.sightings[agent] = Seen(oid, self.boot, self.mono)
        return known

    def granted_seen(self, token: int) -> int:
        return self._machine.grants.setdefault(token, self.mono)

    def gone_instance(self, agent: str) -> str:
        return ""

    def resources(self) -> dict[str, Resource]:
        return RESOURCES

    def approvers(self) -> list[str]:
        return []

    def policy(self) -> Policy:
        return _POLICY

    def restrictions(self) -> Policy | None:
        return None

    def workers(self) -> Workers:
        return Workers({})

    def head(self) -> str:
        return ""

    def other_trees(self, agent: str) -> list[str]:
        return []

    def dirty(self, paths: list[str]) -> list[str]:
        return []

    def since(self, base: str, commit: str, paths: list[str]) -> dict[str, str]:
        return dict.fromkeys(paths, base)

    def changed(self, base: str, commit: str, paths: list[str]) -> dict[str, list[list[str]]]:
        return {path: [] for path in paths}

    def unlanded(self, commit: str, paths: list[str]) -> dict[str, tuple[str, list[list[str]]]]:
        return {}

    def within(self, commit: str, commits: list[str]) -> list[str]:
        return []

    def landed(self, work: str, commits: list[str]) -> list[str]:
        return []

    def lacking(self, commits: list[str]) -> list[str]:
        return []


class GateWorld(Retraced, SimulatedWorld):
    """The server's world: facts that only the client knows are read off the pushed events."""
