"""Reading the private overlay that the local setting `gitcoord.overlay` names."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import printable
from gitcoord.git.commands.settings import list_settings
from gitcoord.git.config import parse_settings
from gitcoord.ledger.context import Context
from gitcoord.policy.model import SECRET
from gitcoord.policy.overlay import Overlay, parse_overlay, stricter
from gitcoord.policy.patterns import line_of, words_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.reader import Source

SETTING = "gitcoord.overlay"


def overlay_file(ctx: Context) -> str:
    """The path of the overlay. '~/' is the home directory; a relative path starts at the git directory."""
    name = ctx.settings.get(SETTING)
    if name.startswith("~/"):
        return ctx.repo.env.get(b"HOME", b"").decode("utf-8", "surrogateescape") + name[1:]
    return name if name.startswith("/") else f"{ctx.repo.common_dir}/{name}"


def read_overlay(ctx: Context) -> Overlay:
    """The overlay; CouldNotJudge where the setting names a file that cannot be read."""
    file = overlay_file(ctx)
    code, out, complaint = list_settings(ctx.repo.env, file=file)
    if code:
        raise CouldNotJudge(
            f"the private overlay {printable(file)} cannot be read: {complaint or 'it is not there'}",
            hints=(f"correct it, or name another one: git config {SETTING}",),
        )
    return parse_overlay(parse_settings(out))


def add_private(
    ctx: Context, source: Source, overlay: Overlay, words: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    """The attributes of these paths with those of the overlay."""
    if not overlay.paths or not words:
        return words
    rules = [(f"rule{number}", rule) for number, rule in enumerate(overlay.paths)]
    lines = [line for name, rule in rules for line in line_of(rule.pattern, name)]
    matched = words_for(ctx, source, lines, [name for name, _ in rules], words)
    found = dict(words)
    for path, answers in matched.items():
        for name, rule in rules:
            if answers[name] == "set":
                secret = {SECRET: "set"} if rule.secret else {}
                found[path] = stricter(found[path], {rule.attribute: rule.value, **secret})
    return found
