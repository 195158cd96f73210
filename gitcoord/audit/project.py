"""`git coord audit`: is this project safe for many agents? Item by item, each with a severity and its evidence.

What applies is the policy and the tree of trunk; what runs is asked of this clone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gitcoord.audit.doctor import examine
from gitcoord.audit.model import BAD, CRITICAL, HIGH, LOW, MEDIUM, OK, UNKNOWN, Check, ask
from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import RULES
from gitcoord.claims.model import all_claims, expiry_of_claim
from gitcoord.deploy.targets import targets
from gitcoord.effects.once import DONE, all_effects
from gitcoord.git.commands.objects import ls_tree
from gitcoord.git.commands.remotes import remote_url
from gitcoord.git.files import exists, is_directory
from gitcoord.ledger.alerts import SETTING as ALERT
from gitcoord.ledger.context import Context
from gitcoord.ledger.format import format_record
from gitcoord.ledger.sessions import Actor
from gitcoord.ledger.snapshot import Snapshot, read_snapshot
from gitcoord.policy.cache import trunk_source
from gitcoord.policy.model import ENFORCE, Policy, is_own_file
from gitcoord.policy.suggest import from_tree
from gitcoord.startup.annotations import Any

_CONFIG = ".gitcoord/config"
_SHOWN = 3
_LONG_TTL = 86_400
_READ = 1 << 18  # bytes of a script that are read
_SCRIPTS = 400
# Files in which people write down how effects outside the repository are made.
_SCRIPT = re.compile(
    r"(^|/)(Makefile|Justfile|Jenkinsfile|package\.json|[^/]+\.(sh|mk)|\.gitlab-ci\.yml)$|^\.github/workflows/|^\.circleci/"
)
# Commands with an effect outside that is not harmless to repeat.
_EFFECT = re.compile(
    r"\b(npm publish|yarn publish|pnpm publish|twine upload|cargo publish|gem push|docker push|kubectl apply|terraform apply|helm upgrade"
    r"|aws s3 (cp|sync)|gcloud \w+ deploy|fly deploy|vercel --prod|serverless deploy|gh release create|alembic upgrade|prisma migrate deploy)\b"
)
_GUARDED = re.compile(r"git[ -]coord (once|deploy)\b")
_SECRET = re.compile(
    r"(^|/)(\.env(\.[a-z]+)?|id_(rsa|ed25519|ecdsa)|[^/]+\.(pem|p12|pfx|key)|credentials(\.json)?|\.npmrc|\.pypirc|\.netrc)$"
)
_PUBLIC = re.compile(r"\.(example|sample|template|dist)$")


class Project(NamedTuple):
    """The project as it was read, once for all items."""

    ctx: Context
    snapshot: Snapshot
    trunk: str
    commit: str
    files: list[str]
    pairs: dict[str, str]
    policy: Policy

    def shown(self, names: list[str]) -> str:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return ", ".join(names[:_SHOWN]) + more


def read_project(ctx: Context) -> Project:
    snapshot = read_snapshot(ctx, trusting=True)
    source = trunk_source(ctx, snapshot)
    files = (
        ls_tree(ctx.repo.env, source.commit, names=True).require("git cannot list trunk").entries
        if source.commit
        else []
    )
    policy = source.policy(files)
    return Project(ctx, snapshot, format_record(snapshot.state).sync, source.commit, files, dict(source.pairs), policy)


Look = Callable[[Project], "tuple[str, str, str]"]  # state, evidence, what helps


def audit(ctx: Context, actor: Actor | None, environ: Mapping[str, str], is_set_up: bool) -> list[Check]:
    """Every item. Those of `doctor` that concern safety come first."""
    works = {check.id: check for check in examine(ctx, actor, environ, is_set_up)}
    found = [works[id]._replace(severity=severity) for id, severity in OF_DOCTOR.items() if id in works]
    if not is_set_up:
        return found
    try:
        project = read_project(ctx)
    except GitcoordError as error:  # `policy` or `ledger` above say it too
        unread = Check("", UNKNOWN, error.message, error.hints[0] if error.hints else "")
        return found + [unread._replace(id=id, severity=severity) for id, (severity, _) in ITEMS.items()]
    for id, (severity, look) in ITEMS.items():
        check = ask(id, lambda id=id, look=look: Check(id, *look(project)))  # type: ignore[misc]
        found.append(check._replace(severity=severity))
    return [check._replace(state=OK if check.state == "advice" else check.state) for check in found]


OF_DOCTOR = {
    "ledger": CRITICAL, "authority": CRITICAL, "hooks": CRITICAL, "policy": HIGH, "tools": HIGH, "guard": HIGH, "parser": HIGH,
    "commands": HIGH,
}  # fmt: skip


# --- what is shared, and who may write it


def _shared(project: Project) -> tuple[str, str, str]:
    marked = [path for path in project.files if project.policy.of(path).claim and not is_own_file(path)]
    if not marked:
        return (
            BAD,
            "no file but gitcoord's own is marked as shared: everybody may change everything without a claim",
            "git coord policy suggest; or mark a path by hand, in .gitattributes: src/app.py gitcoord-claim",
        )
    return OK, f"{len(marked)} of {len(project.files)} files are shared: {project.shown(marked)}", ""


def _mapped(project: Project) -> tuple[str, str, str]:
    rows = from_tree([path for path in project.files if not project.policy.of(path).claim])
    if rows:
        words = project.shown([f"{row.pattern} ({row.kind})" for row in rows])
        return BAD, f"files that agents usually share are not marked: {words}", "git coord policy suggest"
    return OK, "migrations, lock files, CI, rules and configuration are marked", ""


def _writers(project: Project) -> tuple[str, str, str]:
    roles = project.policy.roles
    limited = [path for path in project.files if project.policy.of(path).writers]
    if not roles and not limited:
        words = "every agent may write everywhere: there are no roles and no gitcoord-writers"
        return BAD, words, f'{_CONFIG}: [role "verify"] readonly = true'
    return OK, f"roles: {', '.join(sorted(roles)) or 'none'}; files with gitcoord-writers: {len(limited)}", ""


def _resources(project: Project) -> tuple[str, str, str]:
    declared = project.ctx.world(project.snapshot).resources()
    used = {claim.path for claim in all_claims(project.snapshot.state) if claim.space == "resource"}
    unknown = sorted(used - set(declared) - {name for name in used if "/" in name})
    if unknown:
        return (
            BAD,
            f"claimed, but not declared: {project.shown([f'@{name}' for name in unknown])}",
            f'{_CONFIG}: [resource "{unknown[0]}"] capacity = 1',
        )
    return OK, f"{len(declared)} resource(s) declared", ""


def _secrets(project: Project) -> tuple[str, str, str]:
    found = [path for path in project.files if _SECRET.search(path) and not _PUBLIC.search(path)]
    open_ = [path for path in found if not project.policy.of(path).read]
    if open_:
        return (
            BAD,
            f"agents may read what looks like secrets: {project.shown(open_)}",
            f".gitattributes: {open_[0]} gitcoord-read=deny",
        )
    return (
        OK,
        f"{len(found)} file(s) look like secrets; agents may read none of them"
        if found
        else "no file looks like a secret",
        "",
    )


# --- leases, order, deadlock


def _leases(project: Project) -> tuple[str, str, str]:
    long = sorted(
        {f"{claim.path} ({claim.agent})" for claim in all_claims(project.snapshot.state) if claim.ttl > _LONG_TTL}
    )
    if long:
        return (
            BAD,
            f"claims that outlive their holder by more than a day: {project.shown(long)}",
            "git claim renew --ttl 30m <path>",
        )
    return OK, "no claim lives longer than a day without its holder", ""


def _expired(project: Project) -> tuple[str, str, str]:
    world = project.ctx.world(project.snapshot)
    claims = all_claims(project.snapshot.state)
    world.prefetch_heartbeats(claim.agent for claim in claims)
    gone = [claim.path for claim in claims if expiry_of_claim(project.snapshot.state, world, claim).expired]
    if gone:
        return BAD, f"{len(gone)} claim(s) of agents that went away: {project.shown(gone)}", "git coord sweep"
    return OK, "every claim has a living holder", ""


def _order(project: Project) -> tuple[str, str, str]:
    waiting = project.ctx.world(project.snapshot).waiting()
    if waiting.overtake > 10:
        return BAD, f"a waiter may be overtaken {waiting.overtake} times", f"{_CONFIG}: [queue] overtake = 3"
    return (
        OK,
        f"a waiter is overtaken at most {waiting.overtake} times; a wait that would close a deadlock is refused",
        "",
    )


# --- rules that hold


def _enforced(project: Project) -> tuple[str, str, str]:
    soft = sorted(rule for rule, stage in project.policy.stages.items() if stage != ENFORCE)
    if soft:
        return (
            BAD,
            f"rules that only warn or watch: {', '.join(f'{rule} ({project.policy.stages[rule]})' for rule in soft)}",
            f"{_CONFIG}: [rollout] {soft[0]} = enforce",
        )
    return OK, "every rule is enforced", ""


def _closed(project: Project) -> tuple[str, str, str]:
    if not project.policy.guard.closed:
        return BAD, "an agent's action that could not be judged is allowed", f"{_CONFIG}: [guard] onError = deny"
    return OK, "an agent's action that could not be judged is denied", ""


def _autoclaim(project: Project) -> tuple[str, str, str]:
    if not project.policy.guard.autoclaim:
        return BAD, "agents must claim shared paths by hand", f"{_CONFIG}: [guard] autoclaim = true"
    return OK, "the guard claims shared paths for the agent that writes there", ""


def _approvers(project: Project) -> tuple[str, str, str]:
    if not project.policy.approvers:
        return BAD, "any person may approve: no approver is named", f"{_CONFIG}: [gitcoord] approver = <name>"
    return OK, f"approvers: {project.shown(list(project.policy.approvers))}", ""


def _attribution(project: Project) -> tuple[str, str, str]:
    if not project.policy.attribution:
        return BAD, "a commit of an agent need not name the agent", f"{_CONFIG}: [gitcoord] attribution = require"
    return OK, "a commit of an agent names the agent", ""


def _written_rules(project: Project) -> tuple[str, str, str]:
    if not project.policy.rules:
        return BAD, f"'{project.trunk}' has no {RULES}, which agents are shown when they start", "git coord setup"
    return OK, f"{RULES} is shown to every agent that starts", ""


def _memory(project: Project) -> tuple[str, str, str]:
    named = {kind: project.pairs.get(f"start.{kind}", "") for kind in ("state", "decisions", "lessons")}
    gone = [kind for kind, path in named.items() if not path or path not in set(project.files)]
    if gone:
        return (
            BAD,
            f"agents that start are not shown the project's {', '.join(gone)}",
            f"{_CONFIG}: [start] {gone[0]} = docs/{gone[0]}.md",
        )
    return OK, f"agents that start are shown {', '.join(named.values())}", ""


# --- effects, deploys, alerts


def _idempotent(project: Project) -> tuple[str, str, str]:
    """Effects outside the repository that two agents may make twice."""
    scripts = [path for path in project.files if _SCRIPT.search(path)][:_SCRIPTS]
    found = project.ctx.local.read([f"{project.commit}:{path}" for path in scripts])
    bad = []
    for path, blob in zip(scripts, found):
        for number, line in enumerate((blob.data[:_READ] if blob else b"").decode("utf-8", "replace").split("\n"), 1):
            if _EFFECT.search(line) and not _GUARDED.search(line):
                bad.append(f"{path}:{number} ({_EFFECT.search(line).group(0)})")  # type: ignore[union-attr]
    if bad:
        return (
            BAD,
            f"effects that two agents can make twice: {project.shown(bad)}",
            "wrap it: git coord once <key> -- <command>, or git coord deploy <target> -- <command>",
        )
    return OK, f"{len(scripts)} script(s) read; no effect outside is made without git coord once or deploy", ""


def _unfinished(project: Project) -> tuple[str, str, str]:
    begun = [effect.key for effect in all_effects(project.snapshot.state) if effect.state != DONE]
    if begun:
        return BAD, f"begun, and never said to be done: {project.shown(begun)}", "git coord once --list"
    return OK, "every effect that was begun is done", ""


def _verified(project: Project) -> tuple[str, str, str]:
    known = targets(project.pairs.items())
    lacking = sorted(name for name, target in known.items() if not target.verify)
    if lacking:
        return (
            BAD,
            f"deploys that nobody verifies: {project.shown(lacking)}",
            f'{_CONFIG}: [deploy "{lacking[0]}"] verify = <command>',
        )
    return OK, f"{len(known)} deploy target(s), each verified" if known else "no deploy target is declared", ""


def _alerts(project: Project) -> tuple[str, str, str]:
    if not project.ctx.settings.get(ALERT):
        return BAD, "nobody is told of deadlocks, expiries and long waits", f"git config {ALERT} <command>"
    return OK, f"deadlocks, expiries and long waits run {ALERT}", ""


# --- servers


def server_gate(project: Project) -> tuple[str, str, str]:
    remote = project.ctx.remote
    if not remote:
        return OK, "this repository decides, and its hooks judge", ""
    url = remote_url(project.ctx.repo.env, remote).text.removeprefix("file://")
    hooks = next((f"{top}/hooks" for top in (url, f"{url}/.git") if is_directory(f"{top}/hooks")), "")
    if not url.startswith("/") or not hooks:
        return (
            UNKNOWN,
            f"from here it cannot be seen whether '{remote}' judges what is pushed",
            "on the server: git coord server status",
        )
    if not exists(f"{hooks}/pre-receive"):
        return (
            BAD,
            f"'{remote}' takes every push: client hooks can be switched off",
            "on the server: git coord server install",
        )
    return OK, f"'{remote}' has a pre-receive hook", ""


def _second_copy(project: Project) -> tuple[str, str, str]:
    if not project.ctx.remote and remote_url(project.ctx.repo.env, "origin").text:
        return (
            BAD,
            "only this clone knows the claims, although the project has a remote",
            "git coord setup --remote origin",
        )
    return OK, f"'{project.ctx.remote}' has the ledger" if project.ctx.remote else "the project has no remote", ""


def _signed(project: Project) -> tuple[str, str, str]:
    if project.ctx.settings.get("gitcoord.signing") != "ssh":
        return (
            BAD,
            "events are not signed: an agent that lies about its name is believed",
            "git config gitcoord.signing ssh",
        )
    return OK, "events are signed", ""


def _people(project: Project) -> tuple[str, str, str]:
    """Kill and halt are a person's, or an overseer's."""
    overseers = sorted(name for name, role in project.policy.roles.items() if role.overseer)
    person: Any = project.ctx.settings.get("gitcoord.person") or project.ctx.settings.get("user.email")
    if not person and not overseers:
        return BAD, "nobody could stop an agent: no person and no overseer is known", "git config user.email <e-mail>"
    return OK, f"can stop agents: people at a terminal{', the roles ' + ', '.join(overseers) if overseers else ''}", ""


ITEMS: dict[str, tuple[str, Look]] = {
    "shared-paths": (HIGH, _shared), "mapped": (MEDIUM, _mapped), "writers": (LOW, _writers), "resources": (LOW, _resources),
    "secrets": (HIGH, _secrets), "leases": (MEDIUM, _leases), "expired": (LOW, _expired), "order": (MEDIUM, _order),
    "enforced": (HIGH, _enforced), "fail-closed": (HIGH, _closed), "autoclaim": (LOW, _autoclaim), "approvers": (MEDIUM, _approvers),
    "attribution": (LOW, _attribution), "rules": (MEDIUM, _written_rules), "memory": (LOW, _memory),
    "idempotent-effects": (HIGH, _idempotent), "unfinished-effects": (MEDIUM, _unfinished), "verified-deploys": (MEDIUM, _verified),
    "alerts": (HIGH, _alerts), "kill-switch": (CRITICAL, _people), "server-gate": (HIGH, server_gate), "second-copy": (MEDIUM, _second_copy),
    "signing": (LOW, _signed),
}  # fmt: skip
