"""The project's policy: the settings of `.gitcoord/config` and the `gitcoord-*` attributes, as data.

Three answers stay distinct: a path without a rule is `Attributes()`, a rule that refuses is a verdict of `gates/judge.py`, and a
policy that cannot be read, or has an invalid value, raises CouldNotJudge.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import CONFIG
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


CORRECTED = "correct the file and commit it: a person can, at a terminal"


def invalid_setting(what: str, *hints: str) -> CouldNotJudge:
    """The error of a setting whose value makes no sense: as long as it is committed, nothing can be judged."""
    return CouldNotJudge(f"{CONFIG}: {what}", hints=(*hints, CORRECTED))


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
