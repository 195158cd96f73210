"""What counts as a clause, and that the list of exceptions names only such."""

from __future__ import annotations

import ast

from tests.clauses.__main__ import SOURCES
from tests.clauses.equal import EQUAL
from tests.clauses.mutants import mutants
from tests.clauses.reach import ROOT

SOURCE = '''
LIMIT = 3 if TESTING else 4
class Gate:
    """Words."""
    def may(self, who: str) -> bool:
        """Words."""
        if who not in self.known:
            self.known[who] = ask(who)
        if not who or self.is_dead(who):
            return False
        self.note(who)
        return any(way(who) for way in ("claim", "release"))
def names(rows):
    return [*first(rows), *(row for row in rows if row), 3]
'''
CLAUSES = [
    "Gate.may: never who not in self.known",
    "Gate.may: never not who or self.is_dead(who)",
    "Gate.may: always not who or self.is_dead(who)",
    "Gate.may: not who or self.is_dead(who): without not who",
    "Gate.may: not who or self.is_dead(who): without self.is_dead(who)",
    "Gate.may: not who: without not",
    "Gate.may: False as True",
    "Gate.may: no self.note(who)",
    "Gate.may: True for any((way(who) for way in ('claim', 'release')))",
    "Gate.may: False for any((way(who) for way in ('claim', 'release')))",
    "Gate.may: ('claim', 'release'): without 'claim'",
    "Gate.may: ('claim', 'release'): without 'release'",
    "names: [*first(rows), *(row for row in rows if row), 3]: without *first(rows)",
    "names: [*first(rows), *(row for row in rows if row), 3]: without *(row for row in rows if row)",
    "names: never row",
    "names: always row",
]


def test_clauses() -> None:
    found = mutants("gate.py", SOURCE)
    assert [f"{mutant.where}: {mutant.what}" for mutant in found] == CLAUSES
    whole = ast.unparse(ast.parse(SOURCE))
    assert len({mutant.source for mutant in found} | {whole}) == len(found) + 1, "each is another program"
    assert {len(whole.splitlines()) - len(mutant.source.splitlines()) for mutant in found} == {0}


def test_exceptions_are_clauses() -> None:
    assert set(EQUAL) <= {mutant.name for name in SOURCES for mutant in mutants(name, (ROOT / name).read_text())}
