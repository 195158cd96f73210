"""Items of an audit: effects outside the repository, deploys, who is told, the server, signatures."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator

from gitcoord.audit.model import BAD, UNKNOWN, Check, ok, some
from gitcoord.audit.project import Project
from gitcoord.audit.trees import opened
from gitcoord.base.names import CONFIG
from gitcoord.deploy.targets import targets
from gitcoord.git.commands.remotes import remote_url
from gitcoord.git.files import is_directory
from gitcoord.ledger.alerts import SETTING as ALERT
from gitcoord.ledger.watch import cursors
from gitcoord.server.install import missing_hooks

_SCRIPTS = 400  # files that are read
# Files in which people write down how effects outside the repository are made; not those of others that were copied in.
_SCRIPT = re.compile(
    r"(^|/)(Makefile|[Jj]ustfile|Jenkinsfile|Procfile|package\.json|[^/]+\.(sh|mk|bash)|\.gitlab-ci\.yml|bitbucket-pipelines\.yml)$"
    r"|^\.github/workflows/|^\.circleci/|^\.buildkite/"
)
_COPIED = re.compile(r"(^|/)(node_modules|vendor|third_party|\.venv)/")
# Commands with an effect outside that is not harmless to repeat.
_EFFECT = re.compile(
    r"\b((npm|yarn|pnpm|cargo|poetry|uv|flit|hatch|wrangler) publish|twine upload|gem push|mvn (-\S+ )*deploy|goreleaser release|docker push"
    r"|(kubectl|terraform|tofu) apply|helm (upgrade|install)|pulumi up|ansible-playbook|aws s3 (cp|sync|mv)|gcloud \w+ deploy"
    r"|(fly|flyctl|cdk|sam|netlify|wrangler|serverless|vercel) deploy|vercel --prod|gh release create|gh (pr|issue) comment|git push --tags"
    r"|(alembic|flask db) upgrade|prisma migrate deploy|rails db:migrate|rake db:migrate|manage\.py migrate|flyway migrate|knex migrate:latest"
    r"|sendmail|mailx?|curl\b[^|;&]*(-X ?|--request[ =])(POST|PUT|PATCH|DELETE))\b"
)
_GUARDED = re.compile(r"git[ -]coord (once|deploy)\b")
_COMMENT = re.compile(r"^\s*(#|//|- name:)")
_BUILTIN = {"cd", "exec", "eval", "if", "for", "while", "until", "case", "set", "export", "command", "[", "[["}


def idempotent(project: Project) -> Check:
    """Effects outside the repository that two agents may make twice."""
    scripts = [path for path in project.files if _SCRIPT.search(path) and not _COPIED.search(path)]
    found = [row for path, text in project.texts(scripts[:_SCRIPTS]) for row in _effects(path, text)]
    if found:
        help = "wrap it: git coord once <key> -- <command>, or git coord deploy <target> -- <command>"
        return Check("", BAD, f"effects that two agents can make twice: {some(found)}", help)
    many = f"{_SCRIPTS} of {len(scripts)}" if len(scripts) > _SCRIPTS else f"{len(scripts)}"
    return ok("", f"{many} script(s) read; no effect outside is made without git coord once or deploy")


def _effects(path: str, text: str) -> Iterator[str]:
    guarded = False  # by the line before, which this one continues
    for number, line in enumerate(text.split("\n"), 1):
        guarded = guarded or _GUARDED.search(line) is not None
        effect = None if guarded or _COMMENT.match(line) else _EFFECT.search(line)
        if effect is not None:
            yield f"{path}:{number} ({effect.group(0)})"
        guarded = guarded and line.rstrip().endswith("\\")


def verified(project: Project) -> Check:
    known = targets(project.pairs.items())
    lacking = sorted(name for name, target in known.items() if not target.verify)
    if lacking:
        words = f"deploys that nobody verifies: {some(lacking)}"
        return Check("", BAD, words, f'{CONFIG}: [deploy "{lacking[0]}"] verify = <command>')
    return ok("", f"{len(known)} deploy target(s), each verified" if known else "no deploy target is declared")


def alerts(project: Project) -> Check:
    """Is somebody told? The command is not run; a program that is not there is found."""
    command, events = project.ctx.settings.get(ALERT), "deadlocks, expiries and long waits"
    if not command:
        return Check("", BAD, f"nobody is told of {events}", f"git config {ALERT} <command>")
    try:
        program = (shlex.split(command) or [""])[0]
    except ValueError:
        program = command
    if "=" not in program and program not in _BUILTIN and shutil.which(program) is None:
        return Check(
            "",
            BAD,
            f"nobody is told of {events}: {ALERT} names '{program}', which is not there",
            f"git config {ALERT} <command>",
        )
    return ok("", f"{events} run {ALERT}: {program}")


def followed(project: Project) -> Check:
    """Does a watcher with a name follow the events? One on another machine cannot be seen from here."""
    behind = {name: project.state.seq - place.seq for name, place in cursors(project.ctx).items()}
    if behind:
        return ok("", f"watchers: {some(f'{name} ({late} events behind)' for name, late in sorted(behind.items()))}")
    words = "no watcher with a name has followed the events in this clone"
    return Check("", BAD, words, "git coord watch --name <name> --exec <command>")


def server_gate(project: Project) -> Check:
    remote = project.ctx.remote
    if not remote:
        return ok("", "this repository decides, and its hooks judge")
    url = remote_url(project.ctx.repo.env, remote).text.removeprefix("file://")
    if not url.startswith("/") or not is_directory(url):
        words = f"from here it cannot be seen whether '{remote}' judges what is pushed"
        return Check("", UNKNOWN, words, "on the server: git coord server status <repository>")
    with opened(url) as server:
        missing = [str(row["hook"]) for row in missing_hooks(server)]
    if missing:
        words = f"'{remote}' takes pushes that nobody judged: client hooks can be switched off. Not installed there: {', '.join(missing)}"
        return Check("", BAD, words, "on the server: git coord server install <repository>")
    return ok("", f"'{remote}' judges every push")


def second_copy(project: Project) -> Check:
    remote = project.ctx.remote
    if remote or not remote_url(project.ctx.repo.env, "origin").text:
        return ok("", f"'{remote}' has the ledger" if remote else "the project has no remote")
    words = "only this clone knows the claims, although the project has a remote"
    return Check("", BAD, words, "git coord setup --remote origin")


def signed(project: Project) -> Check:
    if project.ctx.settings.get("gitcoord.signing") == "ssh":
        return ok("", "events are signed")
    words = "events are not signed: an agent that lies about its name is believed"
    return Check("", BAD, words, "git config gitcoord.signing ssh")
