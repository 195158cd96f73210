"""Items of an audit: the rules of the policy, who may decide, and what agents are told."""

from __future__ import annotations

from gitcoord.audit.model import BAD, Check, ok, some
from gitcoord.audit.project import Project
from gitcoord.base.names import CONFIG, RULES
from gitcoord.policy.model import ENFORCE


def enforced(project: Project) -> Check:
    stages = project.policy.stages
    soft = sorted(rule for rule, stage in stages.items() if stage != ENFORCE)
    if not soft:
        return ok("", "every rule is enforced")
    words = ", ".join(f"{rule} ({stages[rule]})" for rule in soft)
    return Check("", BAD, f"rules that only warn or watch: {words}", f"{CONFIG}: [rollout] {soft[0]} = enforce")


def closed(project: Project) -> Check:
    if project.policy.guard.closed:
        return ok("", "an agent's action that could not be judged is denied")
    return Check("", BAD, "an agent's action that could not be judged is allowed", f"{CONFIG}: [guard] onError = deny")


def autoclaim(project: Project) -> Check:
    if project.policy.guard.autoclaim:
        return ok("", "the guard claims shared paths for the agent that writes there")
    return Check("", BAD, "agents must claim shared paths by hand", f"{CONFIG}: [guard] autoclaim = true")


def approvers(project: Project) -> Check:
    if project.policy.approvers:
        return ok("", f"approvers: {some(project.policy.approvers)}")
    return Check("", BAD, "any person may approve: no approver is named", f"{CONFIG}: [gitcoord] approver = <name>")


def attribution(project: Project) -> Check:
    if project.policy.attribution:
        return ok("", "a commit of an agent names the agent")
    return Check("", BAD, "a commit of an agent need not name the agent", f"{CONFIG}: [gitcoord] attribution = require")


def written(project: Project) -> Check:
    if project.policy.rules:
        return ok("", f"{RULES} is shown to every agent that starts")
    return Check(
        "", BAD, f"'{project.trunk}' has no {RULES}, which agents are shown when they start", "git coord setup"
    )


def memory(project: Project) -> Check:
    named = {kind: project.pairs.get(f"start.{kind}", "") for kind in ("state", "decisions", "lessons")}
    files = set(project.files)
    gone = [kind for kind, path in named.items() if path not in files]
    if not gone:
        return ok("", f"agents that start are shown {', '.join(named.values())}")
    words = f"agents that start are not shown the project's {', '.join(gone)}"
    return Check("", BAD, words, f"{CONFIG}: [start] {gone[0]} = docs/{gone[0]}.md")


def people(project: Project) -> Check:
    """Kill and halt are a person's, or an overseer's. A person at a terminal is known by user.email alone."""
    overseers = sorted(name for name, role in project.policy.roles.items() if role.overseer)
    person = project.ctx.settings.get("user.email")
    if not person and not overseers:
        words = "nobody could stop an agent: no person is known here, and no role is an overseer"
        return Check("", BAD, words, "git config user.email <e-mail>")
    able = [f"{person} at a terminal"] * bool(person) + [f"the role '{name}'" for name in overseers]
    return ok("", f"can stop agents: {', '.join(able)}")
