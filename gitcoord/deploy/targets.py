"""Deploy targets of the policy, and the staleness of a commit for one."""

from __future__ import annotations

from gitcoord.base.durations import parse_duration
from gitcoord.base.errors import CouldNotJudge, Refusal, UsageError
from gitcoord.base.names import check_word, printable, quote, shell_word
from gitcoord.policy.model import invalid_setting
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.deploy.model import Deployed

FILE = ".gitcoord/config"
VERIFY_SECONDS = 10 * 60
LONGEST_NAME = 100
_BAD_IN_REF = frozenset(" ~^:?[\\\x7f") | frozenset(map(chr, range(32)))
_SHOWN = 20


class Target(NamedTuple):
    """One `[deploy "name"]` section. Without `remote`, it applies to every remote; `refs` are full names or patterns."""

    name: str
    remote: str = ""
    refs: tuple[str, ...] = ()
    verify: str = ""
    timeout: int = 0  # seconds; 0: not set


class Staleness(NamedTuple):
    """A commit compared with trunk and with the last deploy."""

    target: str  # '' for a comparison with trunk alone
    commit: str
    sync: str
    tips: tuple[str, ...]  # the tips of trunk that the commit does not contain
    behind: int = 0
    authors: tuple[tuple[str, int], ...] = ()  # authors of the missing commits, most first
    rollback: tuple[str, ...] = ()  # the first files that would go back
    rollback_total: int = 0
    conflict: bool = False  # whether a merge would conflict
    conflicting: tuple[str, ...] = ()  # the first conflicting files, as far as git names them
    last: Deployed | None = None  # the last successful deploy of the target
    contains_last: bool = True

    @property
    def stale(self) -> bool:
        return self.behind > 0 or not self.contains_last


def check_target(name: str) -> str:
    return check_word(name, "deploy target", LONGEST_NAME)


def resource_of(target: str) -> str:
    """The resource that a deploy claims, without its '@'."""
    return f"deploy/{target}"


# --- settings ------------------------------------------------------------------------------------------------------


def targets(pairs: Iterable[tuple[str, str]]) -> dict[str, Target]:
    """The `[deploy "name"]` sections. Raises CouldNotJudge for invalid values."""
    found: dict[str, Target] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        if section != "deploy":
            continue
        name, _, setting = rest.rpartition(".")
        try:
            check_target(name)
        except UsageError as error:
            raise _bad(key, error.message, *error.hints) from None
        found[name] = _with(found.get(name, Target(name)), key, setting, value)
    return found


def _with(target: Target, key: str, setting: str, value: str) -> Target:
    """The target with one more setting; unknown settings are ignored."""
    if setting not in ("remote", "ref", "tag", "verify", "timeout"):
        return target
    if not value or not value.replace("\n", " ").replace("\t", " ").isprintable():
        raise _bad(key, f"{quote(value[:40])} is no usable value")
    if setting == "ref":
        return target._replace(refs=(*target.refs, _pattern(key, value)))
    if setting == "tag":
        return target._replace(refs=(*target.refs, _pattern(key, f"refs/tags/{value.removeprefix('refs/tags/')}")))
    if setting == "remote":
        if value[0] == "-" or not _BAD_IN_REF.isdisjoint(value):
            raise _bad(key, f"{quote(value[:40])} is not the name of a remote", "see: git remote")
        return target._replace(remote=value)
    if setting == "verify":
        return target._replace(verify=value)
    try:
        return target._replace(timeout=parse_duration(value))
    except UsageError as error:
        raise _bad(key, error.message, *error.hints) from None


def _pattern(key: str, text: str) -> str:
    """A full ref name, or one with a single '*' in it, as git's refspecs have it."""
    if not text.startswith("refs/"):
        raise _bad(key, f"{quote(text[:60])} is no full name of a ref", f"write it whole: refs/heads/{printable(text)}")
    parts = text.split("/")
    bad = text.count("*") > 1 or ".." in text or "@{" in text or not _BAD_IN_REF.isdisjoint(text)
    if bad or not all(p and p[0] != "." and not p.endswith((".lock", ".")) for p in parts):
        raise _bad(key, f"{quote(text[:60])} cannot be a ref", "a ref's full name, with at most one '*'")
    return text


def _bad(key: str, why: str, *hints: str) -> CouldNotJudge:
    return invalid_setting(f"{printable(key)}: {why}", *hints)


def match(target: Target, remote: str, ref: str) -> bool:
    """Return whether a push of this ref to this remote is a deploy of the target."""
    return target.remote in ("", remote) and any(_fits(pattern, ref) for pattern in target.refs)


def _fits(pattern: str, ref: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return ref == pattern
    return len(ref) >= len(before) + len(after) and ref.startswith(before) and ref.endswith(after)


# --- words ---------------------------------------------------------------------------------------------------------


def refusal(found: Staleness) -> Refusal | None:
    """The refusal of a stale deploy; None where it is up to date."""
    if not found.stale:
        return None
    commit, to = found.commit[:12], f" to '{found.target}'" if found.target else ""
    reasons, hints = [], []
    if found.behind:
        reasons.append(f"it lacks {_commits(found.behind)} of '{printable(found.sync)}'")
        hints.append("bring this branch up to date: git coord sync --pull")
    if found.last is not None and not found.contains_last:
        last = found.last
        reasons.append(f"it lacks {last.commit[:12]}, which {last.agent} deployed last")
        hints.append(f"bring that in: git merge {shell_word(last.commit[:12])}")
    return Refusal("stale", f"{commit} may not be deployed{to}: {'; '.join(reasons)}", hints=tuple(hints))


def details(found: Staleness, *, clean: bool = True) -> list[str]:
    """Lines about the authors of missing commits, files that would go back, and conflicts of a merge. `clean`: nothing uncommitted is
    in its way."""
    lines = []
    if found.authors:
        lines.append("by " + ", ".join(f"{printable(name)} ({count})" for name, count in found.authors))
    if found.rollback_total:
        lines.append(f"a deploy from here would take back: {_listed(found.rollback, found.rollback_total)}")
    if found.conflict:
        where = f" in {_listed(found.conflicting, len(found.conflicting))}" if found.conflicting else ""
        lines.append(f"a merge would conflict{where}")
    elif found.behind and clean:
        lines.append("a merge would be clean")
    return lines


def _listed(names: tuple[str, ...], total: int) -> str:
    more = f" and {total - len(names)} more" if total > len(names) else ""
    return ", ".join(map(printable, names)) + more


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def behind_words(found: Staleness, branch: str = "") -> str:
    """The number of commits it is behind, in words: trunk itself can only be behind its remote."""
    whom = "its remote" if branch == found.sync else f"'{printable(found.sync)}'"
    return f"behind {whom} by {_commits(found.behind)}"


def to_json(found: Staleness) -> dict[str, object]:
    """The comparison for `--json`."""
    return {
        "commit": found.commit,
        "sync": found.sync,
        "behind": found.behind,
        "authors": [{"name": name, "commits": count} for name, count in found.authors],
        "rollback": list(found.rollback),
        "rollback_total": found.rollback_total,
        "conflict": found.conflict,
        "conflicting": list(found.conflicting),
        "contains_last": found.contains_last,
    }


def first_names(names: Iterable[str]) -> tuple[str, ...]:
    """The first names, as many as are shown."""
    return tuple(sorted(names)[:_SHOWN])
