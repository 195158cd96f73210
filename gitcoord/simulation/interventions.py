"""Invariants of halts, handoffs and takeovers: nothing is given during a halt, and what passes on passes whole."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcoord.base.codec import Record
    from gitcoord.ledger.event import Event
    from gitcoord.ledger.state import Changes, State
    from gitcoord.simulation.records import Records


class Interventions:
    """Halts, handoffs and takeovers, followed event by event."""

    def __init__(self, require: Callable[[bool, str], None], claims: Callable[[], Records]) -> None:
        self._require = require
        self._claims = claims  # as they are after the event
        self.is_halted = False
        self._offers: dict[str, list[Record]] = {}  # the claims of each handoff
        self._taken: list[Record] = []  # claims that were taken over, until the command claims them

    def appended(self, before: State, event: Event, changes: Changes) -> None:
        if "halt" in changes:
            self.is_halted = changes["halt"] is not None
        if self.is_halted:
            given = [key for key, r in changes.items() if key.startswith(("claims/", "waits/")) and r is not None]
            self._require(
                not given and event.kind != "expire", f"event {event.seq} ({event.kind}) gives or expires during a halt"
            )
        if event.kind == "handoff":
            self._offers[f"h{event.seq}"] = event.body["claims"]
        elif event.kind == "accept":
            self._accepted(event)
        elif event.kind == "takeover":
            self._take_over(before, event)
        elif event.kind == "claim" and self._taken:
            self._claim_taken(event)

    def _accepted(self, event: Event) -> None:
        """All that was offered has its new holder, in the mode and with the units that were offered; the giver has nothing of it."""
        giver = event.body["holder"]
        for offer in self._offers[event.body["handoff"]]:
            held, what = (
                self._claims().on(offer["space"], offer["path"]),
                f"event {event.seq} hands {offer['path']} over",
            )
            self._require(giver not in held, f"{what}, and {giver} holds it still")
            got = held.get(event.agent)
            self._require(
                got is not None and got["mode"] in ("write", offer["mode"]) and got["units"] >= offer["units"],
                f"{what}, and {event.agent} does not hold it as it was offered",
            )

    def _take_over(self, before: State, event: Event) -> None:
        """A takeover is a person's, and ends the very claim that it names."""
        body, what = event.body, f"event {event.seq} takes {event.body['path']} over"
        self._require(event.agent == "boss", f"{what}, which only a person may")
        key = f"claims/{body['space']}/{body['path']}/@{body['holder']}"
        old = before.get(key)
        assert old is not None
        self._require(old["token"] == body["token"], f"{what} by a token that is not its own")
        own = before.get(f"claims/{body['space']}/{body['path']}/@{event.agent}")
        if own is None or own["mode"] < old["mode"] or old["units"] > 1:
            self._taken.append(old)  # else the person holds it beside the other already

    def _claim_taken(self, event: Event) -> None:
        """The command of a takeover claims all that it took, so that nothing is free in between."""
        taken, body = self._taken.pop(), event.body
        self._require(
            [taken["space"], taken["path"]] in body["items"]
            and (body["mode"], body["units"]) >= (taken["mode"], taken["units"]),
            f"event {event.seq} claims less than {taken['path']} of {taken['agent']}, which it took over",
        )

    def settled(self) -> None:
        """After each swap."""
        self._require(not self._taken, "something was taken over and is free")
