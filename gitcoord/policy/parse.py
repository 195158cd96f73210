"""Parsing the policy: the settings of `.gitcoord/config` and what `git check-attr` reports, made into `Policy`.

An invalid value raises CouldNotJudge, which names the setting; an unknown one is told by `policy check`.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import check_agent, check_path, fold, printable
from gitcoord.policy.model import (
    ALLOW,
    ASK,
    BLOCK,
    CHECKPOINT,
    DENY,
    LANDING,
    RESTORE,
    RULES,
    SECRET,
    STAGES,
    TELL,
    WARN,
    Attributes,
    Guard,
    Policy,
    Role,
    invalid_setting,
)
from gitcoord.startup.annotations import Iterable

# Settings by section, as `git config --list` spells them; for `policy check`.
KNOWN = {
    "gitcoord": ("root", "approver", "role", "attribution", "authority", "sync"),
    "rollout": tuple(RULES),
    "rule": ("record",),
    "role": ("readonly", "scratch", "overseer", "land", "priority"),
    "queue": ("overtake", "reserve", "reservequeued", "priority"),
    "agent": ("role",),
    "resource": ("capacity", "ttl", "read", "write"),
    "deploy": ("remote", "ref", "tag", "verify", "timeout"),
    "guard": ("onerror", "autoclaim", "unknown", "after", "denyread", "askread"),
    "remote": ("timeout",),
    "workers": ("cap", "heartbeat", "attempts"),
    "start": ("state", "decisions", "lessons"),
    "rules": ("ack",),
    "sequence": ("pattern", "start", "width"),
    "land": (
        "how",
        "check",
        "guarded",
        "timeout",
        "resolve",
        "signatures",
        "lanes",
        "renumber",
        "renumbercommand",
        "only",
    ),
    "validator": (),  # by name: `validators.SHIPPED`
}


def parse_policy(pairs: Iterable[tuple[str, str]]) -> Policy:
    """The policy of these settings, without attributes."""
    policy = Policy({}, {}, {}, {}, (), "", False, "", {})
    later: list[tuple[str, str]] = []
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if (section, setting) == ("land", "renumber"):
            policy = policy._replace(renumbers=True)
        elif section == "validator" or (section == "rollout" and setting not in RULES):
            later.append((key, value))
        else:
            policy = _with(policy, section, name, setting, value)
    return _with_validators(policy, later) if any(key.startswith("validator.") for key, _ in later) else policy


def _with_validators(policy: Policy, pairs: list[tuple[str, str]]) -> Policy:
    """The policy with the validators that are turned on, and the stages of the project's own."""
    from gitcoord.validators import sections  # most policies have none

    found = sections(pairs)
    own = {validator.name for validator in found} - RULES.keys()
    for key, value in pairs:
        if key.startswith("rollout.") and key[len("rollout.") :] in own:
            policy = _stage(policy, key[len("rollout.") :], value)
    chain = [
        validator._replace(stage=policy.stage(validator.name), why=policy.why(validator.name))
        for validator in found
        if validator.name != "attribution"  # the judge runs it
    ]
    attribution = policy.attribution or any(validator.name == "attribution" for validator in found)
    return policy._replace(validators=tuple(chain), attribution=attribution)


def _stage(policy: Policy, rule: str, value: str) -> Policy:
    if value not in STAGES:
        raise _invalid(f"rollout.{rule}", value, f"one of {', '.join(STAGES)}")
    policy.stages[rule] = value
    return policy


def _with(policy: Policy, section: str, name: str, setting: str, value: str) -> Policy:
    if section == "rollout" and not name:
        return _stage(policy, setting, value)
    if section == "rule" and setting == "record":
        policy.records[name] = printable(value)
    elif section == "role" and name:
        policy.roles[name] = _role(policy.roles.get(name, Role()), name, setting, value)
    elif section == "agent" and name and setting == "role":
        policy.agents[name] = value
    elif section == "rules" and not name and setting == "ack":
        return policy._replace(ack=_is_true("rules.ack", value))
    elif section == "guard" and not name:
        return policy._replace(guard=_guard(policy.guard, setting, value))
    elif section == "gitcoord" and not name:
        return _general(policy, setting, value)
    return policy


def _general(policy: Policy, setting: str, value: str) -> Policy:
    if setting == "approver":
        try:
            return policy._replace(approvers=(*policy.approvers, check_agent(value)))
        except UsageError as error:
            raise invalid_setting(f"gitcoord.approver: {error.message}") from None
    if setting == "role":
        return policy._replace(default_role=value)
    if setting == "root":
        return policy._replace(root=value)
    if setting == "attribution":
        if value not in ("require", "off"):
            raise _invalid("gitcoord.attribution", value, "'require' or 'off'")
        return policy._replace(attribution=value == "require")
    return policy


def _guard(guard: Guard, setting: str, value: str) -> Guard:
    if setting == "onerror":
        if value not in (DENY, WARN):
            raise _invalid("guard.onError", value, f"'{DENY}' or '{WARN}'")
        return guard._replace(closed=value == DENY)
    if setting == "autoclaim":
        return guard._replace(autoclaim=_is_true("guard.autoclaim", value))
    if setting == "unknown":
        if value not in (ALLOW, WARN, ASK, DENY):
            raise _invalid("guard.unknown", value, f"one of {ALLOW}, {WARN}, {ASK}, {DENY}")
        return guard._replace(unknown=value)
    if setting == "after":
        if value not in (TELL, RESTORE):
            raise _invalid("guard.after", value, f"'{TELL}' or '{RESTORE}'")
        return guard._replace(after=value)
    if setting in ("denyread", "askread"):
        if not value.startswith(("/", "~/")):
            raise _invalid(f"guard.{setting}", value, "a place that begins with '/' or '~/'")
        if setting == "denyread":
            return guard._replace(deny_read=(*guard.deny_read, value))
        return guard._replace(ask_read=(*guard.ask_read, value))
    return guard


def _role(role: Role, name: str, setting: str, value: str) -> Role:
    if setting in ("readonly", "overseer", "land"):
        is_so = _is_true(f"role.{name}.{setting}", value)
        if setting == "land":
            return role._replace(land=is_so)
        return role._replace(readonly=is_so) if setting == "readonly" else role._replace(overseer=is_so)
    if setting == "scratch":
        try:
            return role._replace(scratch=check_path(value))
        except UsageError as error:
            raise invalid_setting(f"role.{printable(name)}.scratch: {error.message}") from None
    return role


def _is_true(key: str, value: str) -> bool:
    if value.lower() not in ("true", "yes", "on", "1", "", "false", "no", "off", "0"):
        raise _invalid(key, value, "true or false")
    return value.lower() in ("true", "yes", "on", "1", "")


def _invalid(key: str, value: str, wanted: str) -> CouldNotJudge:
    return invalid_setting(f"{printable(key)} is '{printable(value)}', not {wanted}")


def unknown_settings(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Unknown keys, which are probably misspelt."""
    keys = [key for key, _ in pairs]
    checks = {key.partition(".")[2].rpartition(".")[0] for key in keys if key.startswith("validator.")}
    wrong = []
    for key in keys:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section == "validator" and name:
            from gitcoord.validators import known_setting

            known = known_setting(name, setting)
        else:
            known = setting in KNOWN.get(section, ()) or (section == "rollout" and setting in checks)
        if not known:
            wrong.append(key)
    return wrong


def attributes_of(values: dict[str, str]) -> Attributes:
    """The attributes that `git check-attr` reports; an unknown value counts as the strictest one."""
    guard = values.get("gitcoord-guard", "unspecified")
    if guard in ("unspecified", "unset", "false"):
        guard = ""
    elif guard not in (WARN, CHECKPOINT):
        guard = BLOCK
    writers = values.get("gitcoord-writers", "unspecified")
    named = () if writers in ("unspecified", "unset", "set") else tuple(w for w in writers.split(",") if w)
    read = values.get("gitcoord-read", "unspecified")
    if read in ("unspecified", "unset", "false", ALLOW):
        read = ""
    elif read != ASK:
        read = DENY
    claim = values.get("gitcoord-claim", "unspecified") not in ("unspecified", "unset", "false")
    landing = values.get("gitcoord-claim") == LANDING
    return Attributes(claim, guard, named, read, SECRET in values, landing)


def fold_patterns(data: bytes) -> bytes:
    """An attributes file with its patterns folded, for ledgers that fold case."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    return "\n".join(map(_fold_pattern, lines)).encode("utf-8", "surrogateescape")


def _fold_pattern(line: str) -> str:
    line = line.lstrip(" \t\r")
    if line.startswith(("#", "[attr]")):
        return line
    end = 0
    if line.startswith('"'):
        end = 1
        while end < len(line) and line[end] != '"':
            end += 2 if line[end] == "\\" else 1
    while end < len(line) and line[end] not in " \t\r":
        end += 1
    return fold(line[:end], case=True) + line[end:]
