"""Items of an audit: which files are shared, who may write and read them, which resources there are."""

from __future__ import annotations

import re

from gitcoord.audit.model import BAD, Check, ok, some
from gitcoord.audit.project import Project
from gitcoord.base.names import CONFIG
from gitcoord.policy.model import is_own_file
from gitcoord.policy.suggest import from_tree

_SUGGEST = "git coord policy suggest"
_SECRET = re.compile(
    r"(^|/)(\.env(\.[a-z]+)?|id_(rsa|ed25519|ecdsa)|[^/]+\.(pem|p12|pfx|key)|credentials(\.json)?|\.npmrc|\.pypirc|\.netrc)$"
)
_PUBLIC = re.compile(r"\.(example|sample|template|dist)$")


def marked(project: Project) -> Check:
    found = [path for path in project.files if project.policy.of(path).claim and not is_own_file(path)]
    if found:
        return ok("", f"{len(found)} of {len(project.files)} files are shared: {some(found)}")
    words = "no file but gitcoord's own is marked as shared: everybody may change everything without a claim"
    return Check("", BAD, words, f"{_SUGGEST}; or mark a path by hand, in .gitattributes: src/app.py gitcoord-claim")


def mapped(project: Project) -> Check:
    rows = from_tree([path for path in project.files if not project.policy.of(path).claim])
    if not rows:
        return ok("", "migrations, lock files, CI, rules and configuration are marked")
    words = some(f"{row.pattern} ({row.kind})" for row in rows)
    return Check("", BAD, f"files that agents usually share are not marked: {words}", _SUGGEST)


def writers(project: Project) -> Check:
    roles = project.policy.roles
    limited = [path for path in project.files if project.policy.of(path).writers]
    if roles or limited:
        return ok("", f"roles: {', '.join(sorted(roles)) or 'none'}; files with gitcoord-writers: {len(limited)}")
    words = "every agent may write everywhere: there are no roles and no gitcoord-writers"
    return Check("", BAD, words, f'{CONFIG}: [role "verify"] readonly = true')


def resources(project: Project) -> Check:
    declared = project.ctx.world(project.snapshot).resources()
    used = {claim.path for claim in project.claims if claim.space == "resource"}
    unknown = sorted(name for name in used - set(declared) if "/" not in name)
    if not unknown:
        return ok("", f"{len(declared)} resource(s) declared")
    words = some(f"@{name}" for name in unknown)
    return Check("", BAD, f"claimed, but not declared: {words}", f'{CONFIG}: [resource "{unknown[0]}"] capacity = 1')


def secrets(project: Project) -> Check:
    found = [path for path in project.files if _SECRET.search(path) and not _PUBLIC.search(path)]
    readable = [path for path in found if not project.policy.of(path).read]
    if readable:
        words = f"agents may read what looks like secrets: {some(readable)}"
        return Check("", BAD, words, f".gitattributes: {readable[0]} gitcoord-read=deny")
    many = f"{len(found)} file(s) look like secrets; agents may read none of them"
    return ok("", many if found else "no file looks like a secret")
