"""The offer of `git coord setup` to a person: commits of an editor, which has no terminal, in that person's name."""

from __future__ import annotations

from gitcoord.base.names import shell_word
from gitcoord.terminal.call import Call


def offer_person(call: Call) -> None:
    """A hint, to a person at a terminal only: an agent that followed it would commit as that person."""
    actor = call.actor_or_none()
    if actor is None or not actor.person or call.ctx.settings.get("gitcoord.person"):
        return
    email = shell_word(call.ctx.settings.get("user.email"))
    call.screen.hint(
        f"let editors commit, merge and pull as you here, without a terminal: git config gitcoord.person {email}"
    )
