"""Validators: checks that a project turns on in its policy, each with a rollout stage as every rule has.

Each shipped validator is a file of pure functions here; `gates/validation.py` collects their input. The project's own validators
are commands. A `[validator "name"]` section turns one on. The private overlay may have a section of the same name, which adds a
second validator and replaces nothing.
"""

from __future__ import annotations

from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import CONFIG, printable, quote
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

# Outcomes. UNKNOWN: it could not judge, which stops as BLOCK does.
PASS, WARN, BLOCK, UNKNOWN = "pass", "warn", "block", "unknown"

# When a validator runs.
WRITE, READ, COMMIT, PUSH, DEPLOY, STOP = "write", "read", "commit", "push", "deploy", "stop"
MOMENTS = (WRITE, READ, COMMIT, PUSH, DEPLOY, STOP)

# The settings of each shipped validator; `enabled` turns on one that needs no other setting.
_ALWAYS = ("enabled", "secret")
SHIPPED = {
    "attribution": (),
    "changelog": ("path", "file", "on"),
    "decision": ("path", "records", "on"),
    "placeholders": ("path", "mark"),
    "injection": ("mark", "except"),
    "handoff": ("release",),
    "spiral": ("repeats", "failures"),
    "budget": ("calls", "bytes", "time", "tokens"),
}
OWN = ("command", "on", "timeout", "path")
PRIVATE = "private"  # the name that secret rules of the overlay are shown under
_HIDDEN = "a private rule of this machine says no"
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_SECONDS = 30


class Result(NamedTuple):
    """The result of a validator at its rollout stage: only BLOCK and UNKNOWN stop anything.

    At stage `warn` the outcome is at most WARN; at `monitor` it is PASS, with a message to record.
    """

    validator: str
    outcome: str
    message: str = ""
    hints: tuple[str, ...] = ()
    stage: str = "enforce"
    path: str = ""
    why: str = ""  # the purpose of the rule

    @property
    def stops(self) -> bool:
        return self.outcome in (BLOCK, UNKNOWN)


class Validator(NamedTuple):
    """A validator that is turned on."""

    name: str
    settings: tuple[tuple[str, str], ...]
    stage: str = "enforce"
    why: str = ""
    private: bool = False  # from the overlay
    secret: bool = False

    def every(self, key: str) -> list[str]:
        return [value for name, value in self.settings if name == key]

    def get(self, key: str, default: str = "") -> str:
        return ([default, *self.every(key)])[-1]

    def number(self, key: str, default: int = 0) -> int:
        value = self.get(key, str(default))
        if not (value.isascii() and value.isdecimal() and len(value) < 16):
            raise self._invalid(key, value, "a number")
        return int(value)

    def duration(self, key: str, default: int = 0) -> int:
        value = self.get(key)
        try:
            return parse_duration(value) if value else default
        except UsageError:
            raise self._invalid(key, value, "a duration, as 90s, 30m or 2h") from None

    def flag(self, key: str) -> bool:
        value = self.get(key, "false").lower()
        if value not in ("true", "yes", "on", "1", "", "false", "no", "off", "0"):
            raise self._invalid(key, value, "true or false")
        return value in ("true", "yes", "on", "1", "")

    @property
    def moments(self) -> tuple[str, ...]:
        """The events at which a validator of changes, or one of the project's own, runs."""
        words = ",".join(self.every("on")).replace(",", " ").split() or [PUSH]
        for word in words:
            if word not in MOMENTS:
                raise self._invalid("on", word, f"one of {', '.join(MOMENTS)}")
        return tuple(words)

    @property
    def seconds(self) -> int:
        return self.duration("timeout", _SECONDS)

    def result(self, outcome: str, message: str, hints: tuple[str, ...] = (), path: str = "") -> Result:
        """The result at this validator's stage. A secret validator shows neither its name nor its message."""
        if self.secret:
            name, message, hints, why = PRIVATE, _HIDDEN, (), "rules of this machine that are not published"
        else:
            name, why = self.name, self.why
        if outcome != PASS and self.stage != "enforce":
            outcome = WARN if self.stage == "warn" else PASS
        return Result(name, outcome, message, hints, self.stage, path, why)

    def _invalid(self, key: str, value: str, wanted: str) -> CouldNotJudge:
        return _invalid(self.name, key, value, wanted, private=self.private)


def _invalid(name: str, key: str, value: str, wanted: str, *, private: bool = False) -> CouldNotJudge:
    where = "the private overlay" if private else CONFIG
    return CouldNotJudge(
        f"{where}: validator.{printable(name)}.{key} is {quote(value[:40])}, not {wanted}",
        hints=("correct the file" if private else "correct the file and commit it",),
    )


def sections(pairs: Iterable[tuple[str, str]], *, private: bool = False) -> list[Validator]:
    """The validators that `[validator "name"]` sections turn on, in their order. Raises CouldNotJudge for invalid values."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "validator" and name:
            found.setdefault(name, []).append((setting, value))
    known = []
    for name, settings in found.items():
        validator = Validator(name, tuple(settings), private=private)
        if validator.every("enabled") and not validator.flag("enabled"):
            continue
        _require_valid(validator)
        known.append(validator._replace(secret=private and validator.flag("secret")))
    return known


def _require_valid(validator: Validator) -> None:
    """Raise CouldNotJudge for an unknown name and for invalid values."""
    name = validator.name
    if name not in SHIPPED:
        if not validator.get("command"):
            known = ", ".join(SHIPPED)
            raise _invalid(name, "command", "", f"a command, and there is no such validator: {known}")
        if not (_NAME.issuperset(name) and name[0].isalpha() and len(name) <= 40 and name != PRIVATE):
            raise _invalid(name, "command", name, "of a validator named by letters, digits and '-'")
        _ = validator.seconds, validator.moments
    elif "on" in SHIPPED[name] and not set(validator.moments) <= {COMMIT, PUSH}:
        raise _invalid(name, "on", " ".join(validator.moments), f"{COMMIT}, {PUSH} or both")


def known_setting(name: str, setting: str) -> bool:
    """Return whether a validator has this setting."""
    return setting in (*_ALWAYS, *SHIPPED.get(name, OWN))
