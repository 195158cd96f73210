"""The classes of records: their fields are those of the record, in its order, and what is read is written again as it was."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

import gitcoord.base.codec
import gitcoord.claims.model
import gitcoord.claims.released
import gitcoord.deploy.model
import gitcoord.effects.events.number
import gitcoord.effects.once
import gitcoord.gates.model
import gitcoord.handoff.model
import gitcoord.ledger.nonces
import gitcoord.ledger.sessions
import gitcoord.policy.roles
import gitcoord.sessions.admission
import gitcoord.tasks.model
from gitcoord.base.codec import Malformed
from gitcoord.ledger.event import effects
from gitcoord.ledger.state import State
from tests.ledger.test_golden import history
from tests.ledger.world import advance

CLASSES = {
    "claims.model": {"Claim": "_CLAIM"},
    "ledger.format": {"Format": "_FORMAT"},
    "claims.released": {"Released": "_RELEASED"},
    "deploy.model": {"Deployed": "_DEPLOY", "Deploys": "_TARGET"},
    "effects.events.number": {"GivenNumbers": "_RECORD"},
    "effects.once": {"Effect": "_RECORD"},
    "gates.model": {"Approval": "_APPROVAL", "Reading": "_READ", "RulesReader": "_READER"},
    "handoff.model": {"Grant": "_OFFERED", "Handoff": "_HANDOFF", "Waiting": "_WAITING"},
    "ledger.nonces": {"Remembered": "_NONCE"},
    "ledger.sessions": {"Agent": "_AGENT", "Lost": "_LOST"},
    "policy.roles": {"GivenRole": "_ROLE"},
    "sessions.admission": {"Halted": "_HALT"},
    "tasks.model": {"Task": "_TASK", "Held": "_HELD"},
}
ROWS = [(module, name, shape) for module, names in CLASSES.items() for name, shape in names.items()]
BY_FILE: dict[str, Any] = {
    "claims/": gitcoord.claims.model.Claim,
    "lineage/": gitcoord.claims.released.Released,
    "deploys/": gitcoord.deploy.model.Deploys,
    "once/": gitcoord.effects.once.Effect,
    "approvals/": gitcoord.gates.model.Approval,
    "acks/": gitcoord.gates.model.RulesReader,
    "handoffs/": gitcoord.handoff.model.Handoff,
    "agents/": gitcoord.ledger.sessions.Agent,
    "tasks/": gitcoord.tasks.model.Task,
}


@pytest.mark.parametrize(("module", "name", "shape"), ROWS)
def test_fields_are_those_of_the_record(module: str, name: str, shape: str) -> None:
    there = __import__(f"gitcoord.{module}", fromlist=("x",))
    kind, keys = getattr(there, name), getattr(there, shape)
    fields = [
        field for field in kind._fields if (name, field) not in (("Held", "agent"), ("Claim", "reserved"))
    ]  # by the file's name; optional
    assert fields == ["giver" if key == "from" else key for key in keys]
    words = get_type_hints(kind, {**vars(there), "Record": dict, "Any": Any, "Item": object})
    plain = {key: words[field] for key, field in zip(keys, fields) if isinstance(keys[key], type)}
    assert {key: word for key, word in plain.items() if word in (str, int, bool)} == {
        key: keys[key] for key in plain if keys[key] in (str, int, bool)
    }


def test_what_is_read_is_written_as_it_was() -> None:
    state, met = State(), set()
    for event in history()[0].events():
        for file, record in effects(state, event).items():
            for prefix, kind in BY_FILE.items():
                if file.startswith(prefix) and record is not None:
                    met.add(prefix)
                    assert kind.from_record(record, file).to_record() == record
                    with pytest.raises(Malformed):
                        kind.from_record({**record, "more": 1}, file)
        advance(state, event)
    assert met == set(BY_FILE)
