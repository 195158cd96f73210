"""The private overlay: rules of one machine that are not published. It adds to the project's policy and never loosens it.

It has the syntax of `.gitcoord/config` and may contain a stricter stage, `gitcoord.attribution = require`, `rules.ack = true`,
validators (which run beside those of the policy), and `[path "<pattern>"]` with `claim`, `guard`, `read`, `writers`, as the
attributes of the same names. `secret = true` hides a validator or a path's rule in messages.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import printable, quote
from gitcoord.policy.model import BLOCK, CHECKPOINT, ENFORCE, RULES, STAGES, WARN, Policy
from gitcoord.startup.namedtuple import NamedTuple
from gitcoord.validators import Validator, known_setting, sections

Pairs = list[tuple[str, str]]
Words = dict[str, str]


_PATH = {
    "claim": ("true",),
    "guard": (WARN, CHECKPOINT, BLOCK),
    "read": ("ask", "deny"),
    "writers": (),
}
_NOTHING = ("unspecified", "unset", "false", "")
NOBODY = "!"  # not a valid name of a role


class PathRule(NamedTuple):
    """An additional attribute of the paths that a pattern matches."""

    pattern: str
    attribute: str
    value: str
    secret: bool


class Overlay(NamedTuple):
    pairs: Pairs
    checks: tuple[Validator, ...] = ()
    paths: tuple[PathRule, ...] = ()


def parse_overlay(pairs: Pairs) -> Overlay:
    """Raises CouldNotJudge for invalid values."""
    rules: dict[str, dict[str, str]] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "path" and name:
            rules.setdefault(name, {})[setting] = value
        elif section == "rollout" and value not in STAGES:
            raise _invalid(key, value, f"one of {', '.join(STAGES)}")
    paths = [rule for pattern, settings in rules.items() for rule in _path_rules(pattern, settings)]
    return Overlay(pairs, tuple(sections(pairs, private=True)), tuple(paths))


def _path_rules(pattern: str, settings: dict[str, str]) -> list[PathRule]:
    secret = settings.get("secret", "false").lower() not in ("false", "no", "off", "0")
    found = []
    for setting, values in _PATH.items():
        value = settings.get(setting, "")
        if setting not in settings or (setting == "claim" and value == "false"):
            continue
        if values and value not in values:
            raise _invalid(f"path.{pattern}.{setting}", value, f"one of {', '.join(values)}")
        if not values and not (value and value.isprintable() and " " not in value):
            raise _invalid(f"path.{pattern}.{setting}", value, "roles with a comma between them")
        found.append(PathRule(pattern, f"gitcoord-{setting}", value if value != "true" else "set", secret))
    return found


def _invalid(key: str, value: str, wanted: str) -> CouldNotJudge:
    return CouldNotJudge(
        f"the private overlay: {printable(key)} is {quote(value[:40])}, not {wanted}", hints=("correct the file",)
    )


def tightened(policy: Policy, overlay: Overlay) -> Policy:
    """The policy with the overlay's rules. Settings that would loosen it are ignored."""
    own = {validator.name for validator in policy.validators}
    added = []
    for key, value in overlay.pairs:
        if key == "gitcoord.attribution" and value == "require":
            policy = policy._replace(attribution=True)
        elif key == "rules.ack" and value == "true":
            policy = policy._replace(ack=True)
        elif key.startswith("rollout.") and _is_stricter(value, policy.stage(key[len("rollout.") :])):
            policy.stages[key[len("rollout.") :]] = value
    stages = {key[len("rollout.") :]: value for key, value in overlay.pairs if key.startswith("rollout.")}
    for validator in overlay.checks:
        if validator.name == "attribution":
            policy = policy._replace(attribution=True)
            continue
        # A validator that the policy does not have may have any stage: that loosens nothing.
        stage = policy.stage(validator.name) if validator.name in own else stages.get(validator.name, ENFORCE)
        added.append(validator._replace(stage=stage, why=policy.why(validator.name)))
    chain = [validator._replace(stage=policy.stage(validator.name)) for validator in policy.validators]
    writers = policy.writers or any(rule.attribute == "gitcoord-writers" for rule in overlay.paths)
    return policy._replace(validators=(*chain, *added), writers=writers, present=policy.present or bool(overlay.paths))


def _is_stricter(stage: str, than: str) -> bool:
    return STAGES.index(stage) > STAGES.index(than)


def stricter(words: Words, added: Words) -> Words:
    """The attributes of a path with those of the overlay; of each the stricter value."""
    found = dict(words)
    for attribute, value in added.items():
        if value in _NOTHING:
            continue
        old = found.get(attribute, "unspecified")
        if attribute == "gitcoord-writers" and old not in (*_NOTHING, "set"):
            value = ",".join(role for role in old.split(",") if role in value.split(",")) or NOBODY
        elif attribute in ("gitcoord-guard", "gitcoord-read") and old not in _NOTHING:
            order = _PATH[attribute.removeprefix("gitcoord-")]
            # An unknown value counts as the strictest.
            value = max(old, value, key=lambda each: order.index(each) if each in order else len(order))
        found[attribute] = value
    return found


def problems(policy: Policy, overlay: Overlay) -> list[str]:
    """Settings of the overlay that are ignored: they would loosen the policy, or are unknown. `policy` is without overlay."""
    own = {validator.name for validator in policy.validators}
    private = {validator.name for validator in overlay.checks}
    wrong = []
    for key, value in overlay.pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "rollout" and not name and setting in RULES.keys() | own | private:
            fresh = setting in private - own
            if not fresh and not _is_stricter(value, policy.stage(setting)) and value != policy.stage(setting):
                wrong.append(f"{key} would loosen the policy, and does not count")
        elif key == "gitcoord.attribution" or key == "rules.ack":
            if value not in ("require", "true"):
                wrong.append(f"{key} would loosen the policy, and does not count")
        elif section == "validator" and name:
            wrong += [] if known_setting(name, setting) else [f"{key} is not known"]
        elif not (section == "path" and setting in (*_PATH, "secret")):
            wrong.append(f"{key} is not allowed in an overlay")
    return wrong
