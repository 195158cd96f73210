"""Explaining the policy: the rules for a path and the lines that set them, and likely mistakes."""

from __future__ import annotations

from gitcoord.base.names import CONFIG, RULES, printable
from gitcoord.effects.events.number import number_file
from gitcoord.effects.sequences import sequences
from gitcoord.gates.unreadable import check_settings
from gitcoord.git.commands.objects import ls_tree
from gitcoord.git.files import read_file
from gitcoord.landing.model import rules_of
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import read_snapshot
from gitcoord.policy.cache import trunk_source
from gitcoord.policy.model import ATTRIBUTES, BLOCK, CHECKPOINT, LANDING, SECRET, WARN
from gitcoord.policy.overlay import problems as overlay_problems
from gitcoord.policy.overlay_files import SETTING, overlay_file
from gitcoord.policy.parse import parse_policy, unknown_settings
from gitcoord.policy.patterns import words_for
from gitcoord.policy.reader import Source
from gitcoord.policy.roles import role_of
from gitcoord.validators import PRIVATE

OVERLAY = "private overlay"
_RULE_OF = {"gitcoord-claim": "unclaimed", "gitcoord-guard": "guard", "gitcoord-writers": "role"}
_NOTHING = ("unset", "false")


class ExplainedRule:
    """A line of an attributes file that sets gitcoord's attributes."""

    __slots__ = ("attributes", "directory", "file", "number", "pattern")

    def __init__(self, file: str, number: int, words: list[str]) -> None:
        self.file = file
        self.number = number
        self.directory = file.rpartition("/")[0]
        self.pattern, *self.attributes = words

    def sets(self, attribute: str) -> bool:
        return any(word.lstrip("-!").partition("=")[0] == attribute for word in self.attributes)


def explain(ctx: Context, paths: list[str], commit: str = "") -> list[dict[str, object]]:
    """For each path its rules, each with the file and line that sets it, and the attributes that a line unsets."""
    source = _source(ctx, commit)
    policy = source.policy(())
    lines = _lines(ctx, source)
    answers = source.answers(paths)
    committed = source.committed_answers(paths) if source.overlay is not None else answers
    rows: list[dict[str, object]] = []
    for path in paths:
        rules, lifted = [], []
        for attribute in ATTRIBUTES:
            value = answers[path].get(attribute, "unspecified")
            if value == "unspecified":
                continue
            line = _deciding_line(ctx, source, lines, path, attribute)
            if value in _NOTHING:
                lifted.append(
                    {"attribute": attribute, "file": line.file if line else "", "line": line.number if line else 0}
                )
                continue
            rule = _RULE_OF.get(attribute, "")
            row = {"attribute": attribute, "value": value, "stage": policy.stage(rule) if rule else "enforce"}
            if value != committed[path].get(attribute, "unspecified"):
                # A private rule made it stricter. A secret one shows as little as a refusal does.
                value = PRIVATE if SECRET in answers[path] else value
                rules.append({**row, "value": value, "file": OVERLAY, "line": 0})
                continue
            rules.append({**row, "file": line.file if line else "", "line": line.number if line else 0})
        if policy.ack and source.rules:
            rules.append(
                {"attribute": "rules.ack", "value": "true", "file": CONFIG, "line": 0, "stage": policy.stage("rules")}
            )
        rows.append({"path": path, "commit": source.commit, "rules": rules, "lifted": lifted})
    return rows


def judged(ctx: Context, commit: str = "") -> dict[str, object]:
    """The commit whose policy counts, and the policy's files that are different in this work tree."""
    source = _source(ctx, commit)
    names = dict.fromkeys((CONFIG, ".gitattributes", *(name for name, _ in source.attribute_files)))
    edited = [name for name in names if ctx.repo.worktree and not _is_as_committed(ctx, source.commit, name)]
    return {"commit": source.commit, "edited": edited}


def _is_as_committed(ctx: Context, commit: str, name: str) -> bool:
    found = ctx.local.read([f"{commit}:{name}"])[0] if commit else None
    return read_file(f"{ctx.repo.worktree}/{name}") == (found.data if found is not None else b"")


def _source(ctx: Context, commit: str) -> Source:
    return trunk_source(ctx, read_snapshot(ctx), commit)


def role_now(ctx: Context, agent: str) -> str:
    snapshot = read_snapshot(ctx)
    return role_of(snapshot.state, ctx.world(snapshot).policy(), agent)


def other_roles(ctx: Context, role: str) -> list[str]:
    """The declared roles, where this role is neither declared nor named as a writer: it may be misspelt."""
    source = _source(ctx, "")
    words = [word for line in _lines(ctx, source) for word in line.attributes]
    writers = {name for word in words for name in word.partition("gitcoord-writers=")[2].split(",")}
    declared = parse_policy(source.pairs).roles
    return [] if role in declared or role in writers else sorted(declared)


def _lines(ctx: Context, source: Source) -> list[ExplainedRule]:
    """The lines that set gitcoord's attributes, in git's order: the last that matches wins."""
    found: list[ExplainedRule] = []
    for file, oid in sorted(source.attribute_files, key=lambda row: row[0].count("/")):
        (blob,) = ctx.store.read([oid])
        text = blob.data.decode("utf-8", "surrogateescape") if blob is not None else ""
        for number, line in enumerate(text.split("\n"), 1):
            if "gitcoord-" in line and not line.lstrip().startswith("#") and len(line.split()) > 1:
                found.append(ExplainedRule(file, number, line.split()))
    return found


def _deciding_line(
    ctx: Context, source: Source, lines: list[ExplainedRule], path: str, attribute: str
) -> ExplainedRule | None:
    """The last line that sets the attribute and matches the path."""
    for line in reversed([each for each in lines if each.sets(attribute)]):
        if _matched(ctx, source, line, [path]):
            return line
    return None


def check_policy(ctx: Context, commit: str = "") -> list[dict[str, str]]:
    """Likely mistakes. Raises CouldNotJudge for an invalid value."""
    source = _source(ctx, commit)
    policy = check_settings(source.pairs)
    declared, landing = sequences(source.pairs), rules_of(source.pairs)
    problems = [{"where": CONFIG, "what": f"{key} is not known"} for key in unknown_settings(source.pairs)]
    for name in landing.renumber:
        if name not in declared or not declared[name].patterns:
            what = f'land.renumber: there is no [sequence "{printable(name)}"] with a pattern'
            problems.append({"where": CONFIG, "what": what})
        elif read_snapshot(ctx).state.get(number_file(name)) is not None:
            what = f"land.renumber: numbers of {name} were reserved by 'git coord number', and files that have one may get another"
            problems.append({"where": CONFIG, "what": what})
    if policy.ack and not source.rules:
        problems.append({"where": CONFIG, "what": f"rules.ack needs {RULES}, which is not there"})
    if source.overlay is not None:
        problems += [{"where": OVERLAY, "what": what} for what in overlay_problems(policy, source.overlay)]
    tracked = ls_tree(ctx.repo.env, source.commit, names=True).entries
    lines = _lines(ctx, source)
    covered = {id(line): _matched(ctx, source, line, tracked) for line in lines}
    for index, line in enumerate(lines):
        where = f"{line.file}:{line.number}"
        problems += [{"where": where, "what": f"{word} is not known"} for word in line.attributes if _is_strange(word)]
        if not covered[id(line)]:
            problems.append({"where": where, "what": f"'{line.pattern}' matches no file{_advice(line.pattern)}"})
            continue
        for attribute in ATTRIBUTES:
            later = [other for other in lines[index + 1 :] if other.sets(attribute)]
            hidden = set().union(*(covered[id(other)] for other in later)) if line.sets(attribute) else set()
            if hidden and covered[id(line)] <= hidden:
                by = ", ".join(f"{o.file}:{o.number}" for o in later if covered[id(o)] & covered[id(line)])
                problems.append({"where": where, "what": f"{attribute} of '{line.pattern}' never counts: {by} decides"})
    return problems


def private_rules(ctx: Context) -> str:
    """The file of this machine's private overlay; '' where none is in force."""
    return overlay_file(ctx) if ctx.settings.get(SETTING) else ""


def _is_strange(word: str) -> bool:
    """Return whether the attribute is unknown, or an unknown tier of `gitcoord-guard`: it counts as the strictest."""
    name, given, value = word.lstrip("-!").partition("=")
    tier = given and name == "gitcoord-guard" and value not in (BLOCK, CHECKPOINT, WARN)
    way = given and name == "gitcoord-claim" and value not in (LANDING, "true", "false")
    return name.startswith("gitcoord-") and (name not in ATTRIBUTES or bool(tier or way))


def _advice(pattern: str) -> str:
    return f" ('{pattern.rstrip('/')}/**' for all below a directory)" if "*" not in pattern else ""


def _matched(ctx: Context, source: Source, line: ExplainedRule, tracked: list[str]) -> set[str]:
    """The files that a pattern matches: git is asked with an attributes file of this one line."""
    base = source.key(line.directory) + "/" if line.directory else ""
    keys = [(source.key(name), name) for name in tracked]
    inside = [(key[len(base) :], name) for key, name in keys if key.startswith(base)]
    if not inside:
        return set()
    lines = [f"{line.pattern} gitcoord-claim=matched"]
    found = words_for(ctx, source, lines, ["gitcoord-claim"], [key for key, _ in inside])
    return {name for key, name in inside if found[key]["gitcoord-claim"] == "matched"}
