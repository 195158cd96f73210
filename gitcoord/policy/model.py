"""The project's policy: the settings of `.gitcoord/config` and the `gitcoord-*` attributes, as data.

Three answers stay distinct: a path without a rule is `Attributes()`, a rule that refuses is a verdict of `gates/judge.py`, and a
policy that cannot be read, or has an invalid value, raises CouldNotJudge.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError
from gitcoord.base.names import CONFIG, check_agent, check_path, fold, printable
from gitcoord.startup.annotations import Callable, Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.validators import Validator

MONITOR, WARN, ENFORCE = "monitor", "warn", "enforce"
STAGES = (MONITOR, WARN, ENFORCE)
BLOCK, CHECKPOINT = "block", "checkpoint"
ALLOW, DENY, ASK = "allow", "deny", "ask"
TELL, RESTORE = "tell", "restore"
ATTRIBUTES = ("gitcoord-claim", "gitcoord-guard", "gitcoord-writers", "gitcoord-read")
ON_A_BRANCH = "or work on a branch, where it needs no claim: git switch -c <branch>; then: git coord land"
LANDING = "landing"  # the value of gitcoord-claim for paths that are claimed where they land
SECRET = "gitcoord-secret"  # added to the attributes of a path that a secret rule of the private overlay matches

# Each rule and its purpose, which every refusal shows. [rollout] <rule> = <stage> sets its stage.
RULES = {
    "unclaimed": "a shared path is changed only under a write claim",
    "held": "a path that is held is changed by its holder alone",
    "uncommitted": "a file that another agent wrote in this work tree and has not committed is changed and staged by that agent alone",
    "branch": "a work tree that several agents use stays on its branch",
    "lineage": "a change builds on the last released work on its path",
    "stale-deploy": "nothing is deployed from a stale copy",
    "role": "a role writes only where it may",
    "guard": "guarded paths are changed by nobody, or with a person's approval",
    "own-files": "the guard's own files are changed with a person's approval",
    "killed": "no change of a killed agent is accepted",
    "halted": "no change is accepted during a halt",
    "ledger": "the ledger is append-only, and only gitcoord appends",
    "attribution": "a commit of an agent names the agent",
    "rules": "an agent that pushes has read the current version of the project's rules",
    "changelog": "a change that users notice has a line in the changelog",
    "decision": "a change of these paths comes with a decision record",
    "placeholders": "nothing unfinished is deployed",
    "injection": "agents take instructions from people, not from files",
    "handoff": "unfinished work is handed over",
    "spiral": "an action that did not help several times is not repeated",
    "budget": "a session stays within its budget",
}
# Of these rules the finding itself says all that the rule's purpose says.
_PLAIN = ("held", "unclaimed", "uncommitted", "branch", "killed", "halted")
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


class Attributes(NamedTuple):
    """The attributes of one path."""

    claim: bool = False
    guard: str = ""
    writers: tuple[str, ...] = ()
    read: str = ""  # DENY or ASK: the answer to an agent's tool that would read it
    private: bool = False  # a secret rule of this machine's overlay matches
    landing: bool = False  # `gitcoord-claim=landing`: the claim is needed where work lands, not before


class Guard(NamedTuple):
    """The settings of `[guard]`: how calls of agent tools are judged."""

    closed: bool = True  # a call that could not be judged is denied
    autoclaim: bool = False  # a free shared path is claimed for the agent that writes there
    unknown: str = ALLOW  # the answer to a shell command whose effects are unknown
    after: str = TELL  # the answer to changes of others' files by a program
    deny_read: tuple[str, ...] = ()  # places outside the repository, as the settings spell them
    ask_read: tuple[str, ...] = ()


class Role(NamedTuple):
    readonly: bool = False
    scratch: str = ""  # where a read-only role may write; '{agent}' stands for the agent's name
    overseer: bool = False  # may kill, halt, end a kill or a halt and remove the hooks, as people may
    land: bool = True  # may bring branches onto trunk by `git coord land`


class Policy(NamedTuple):
    stages: dict[str, str]
    records: dict[str, str]
    roles: dict[str, Role]
    agents: dict[str, str]
    approvers: tuple[str, ...]
    default_role: str
    attribution: bool
    root: str
    attributes: dict[str, Attributes]  # of the requested paths
    present: bool = False  # the project has a policy
    ack: bool = False  # agents that push must have acknowledged the rules
    rules: str = ""  # the blob of the written rules; '' where there are none
    writers: bool = False  # some path has `gitcoord-writers`
    guard: Guard = Guard()
    validators: tuple[Validator, ...] = ()
    lands: bool = True  # what is judged lands, or is deployed from where it is; False: it is on a work branch

    renumbers: bool = False  # files of some sequence get their numbers when they land
    in_turn: bool = False  # what is judged is a landing in its turn, with which intents of others do not conflict

    def placed(self, lands: Callable[[], bool]) -> Policy:
        """The policy for what is judged at a place where work lands, or not: asked only where that matters."""
        return self._replace(lands=lands()) if any(each.landing for each in self.attributes.values()) else self

    def of_landing(self, path: str) -> bool:
        """Is this path left alone for now, since claims on it are needed only where work lands?"""
        return not self.lands and self.attributes[path].landing

    def stage(self, rule: str) -> str:
        return self.stages.get(rule, ENFORCE)

    def why(self, rule: str) -> str:
        """The purpose of a rule, and the project's decision record for it where the policy names one."""
        words = RULES.get(
            rule, "a check of this project's own" if rule != "private" else "a rule that is not published"
        )
        return words + (f"; see {self.records[rule]}" if rule in self.records else "")

    def reasons(self, rules: Iterable[str]) -> list[str]:
        """Lines with the purpose of each rule, where that adds to a finding."""
        told = [rule for rule in dict.fromkeys(rules) if rule not in _PLAIN or rule in self.records]
        return [f"why: {rule}: {self.why(rule)}" for rule in told]

    def of(self, path: str) -> Attributes:
        return self.attributes[path]


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
            raise CouldNotJudge(f"{CONFIG}: gitcoord.approver: {error.message}") from None
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
            raise CouldNotJudge(f"{CONFIG}: role.{printable(name)}.scratch: {error.message}") from None
    return role


def _is_true(key: str, value: str) -> bool:
    if value.lower() not in ("true", "yes", "on", "1", "", "false", "no", "off", "0"):
        raise _invalid(key, value, "true or false")
    return value.lower() in ("true", "yes", "on", "1", "")


def _invalid(key: str, value: str, wanted: str) -> CouldNotJudge:
    return CouldNotJudge(
        f"{CONFIG}: {printable(key)} is '{printable(value)}', not {wanted}", hints=("correct the file and commit it",)
    )


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


# --- files of the policy --------------------------------------------------------------------------------------------


def is_own_file(path: str) -> bool:
    """Return whether the path is below `.gitcoord/` or is an attributes file (see `same_answers` for those)."""
    return path.startswith(".gitcoord/") or path == ".gitcoord" or is_attributes_file(path)


def is_attributes_file(path: str) -> bool:
    return path.rpartition("/")[2].lower() == ".gitattributes"


def same_answers(old: bytes, new: bytes, top: bytes = b"") -> bool:
    """Return whether a change of an attributes file keeps every `gitcoord-*` attribute. `top` defines macros."""
    return _policy_lines(old, new + b"\n" + top) == _policy_lines(new, old + b"\n" + top)


def _policy_lines(data: bytes, other: bytes) -> list[bytes]:
    """The lines that set `gitcoord-*` attributes, directly or through a macro of either version, in their order."""
    lines = [line.strip() for line in data.split(b"\n") if line.strip() and not line.lstrip().startswith(b"#")]
    words = [b"gitcoord"]
    for _ in range(8):  # macros that use macros
        macros = [
            line.split()[0].removeprefix(b"[attr]")
            for line in (data + b"\n" + other).split(b"\n")
            if line.startswith(b"[attr]") and any(word in line for word in words)
        ]
        if set(macros) <= set(words):
            break
        words = [b"gitcoord", *macros]
    return [line for line in lines if any(word in line for word in words)]
