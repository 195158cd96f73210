"""Suggestions of paths to mark, from the names of a project's files and from its history of changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

CLAIM = "gitcoord-claim"
LANDING = "gitcoord-claim=landing"  # for files that git can merge: claimed where they land, not while they are edited
DAYS = 7  # changes of several authors within so many days are close to each other
_MEETINGS = 2
_MOST = 10


class Suggestion(NamedTuple):
    """One line of .gitattributes, the reason for it, and how many files it matches."""

    pattern: str
    kind: str
    why: str
    files: int
    mark: str = CLAIM  # the attribute that marks the path

    @property
    def line(self) -> str:
        return f"{quoted(self.pattern)} {self.mark}"


class PastCommit(NamedTuple):
    """One commit: its author, its time (seconds), and the files that it changed."""

    who: str
    at: int
    paths: tuple[str, ...]


class _Kind(NamedTuple):
    name: str
    why: str
    files: frozenset[str]  # names of files, anywhere
    paths: tuple[str, ...] = ()  # paths from the top; a directory ends with a slash
    directories: frozenset[str] = frozenset()  # names of directories, anywhere


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KINDS = (
    _Kind("migrations", "order and numbers matter", frozenset(), ("alembic/versions/",), _names("migrations migrate")),
    _Kind(
        "lock file",
        "it cannot be merged by hand",
        _names(
            "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb Cargo.lock Gemfile.lock poetry.lock uv.lock"
            " pdm.lock Pipfile.lock composer.lock go.sum mix.lock pubspec.lock Podfile.lock packages.lock.json gradle.lockfile flake.lock"
            " .terraform.lock.hcl"
        ),
    ),
    _Kind(
        "CI",
        "it decides what is tested and released",
        _names(
            ".gitlab-ci.yml .travis.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml .drone.yml .woodpecker.yml appveyor.yml"
            " cloudbuild.yaml"
        ),
        (".github/workflows/", ".github/actions/", ".circleci/", ".buildkite/", ".woodpecker/", ".ci/"),
    ),
    _Kind(
        "rules",
        "agents and people go by it",
        _names("AGENTS.md CLAUDE.md GEMINI.md CODEOWNERS .cursorrules .windsurfrules"),
        (".github/copilot-instructions.md", ".cursor/rules/", ".claude/settings.json", ".codex/config.toml"),
    ),
    _Kind(
        "configuration",
        "everything depends on it",
        _names(
            "package.json pyproject.toml setup.cfg setup.py requirements.txt Cargo.toml go.mod Gemfile composer.json pom.xml build.gradle"
            " build.gradle.kts settings.gradle settings.gradle.kts tsconfig.json Makefile CMakeLists.txt Dockerfile docker-compose.yml"
            " docker-compose.yaml compose.yml compose.yaml Procfile"
        ),
    ),
)


def quoted(pattern: str) -> str:
    """The pattern as .gitattributes takes it."""
    if not any(char in pattern for char in ' "\\\t') and not pattern.startswith(("#", "!")):
        return pattern
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def from_tree(paths: Iterable[str]) -> list[Suggestion]:
    """Suggestions by the names of the files. A file that is there several times is one pattern."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        for kind in _KINDS:
            pattern = _pattern(kind, path)
            if pattern:
                found.setdefault((kind.name, pattern), []).append(path)
                break
    reasons = {kind.name: kind.why for kind in _KINDS}
    rows = []
    for (name, pattern), matched in found.items():
        is_file = not pattern.endswith("/**")
        one = f"/{matched[0]}" if is_file and "/" not in matched[0] else matched[0]
        shown = one if is_file and len(matched) == 1 else pattern
        rows.append(Suggestion(escaped(shown) if is_file else shown, name, reasons[name], len(matched)))
    order = [kind.name for kind in _KINDS]
    return sorted(rows, key=lambda row: (order.index(row.kind), row.pattern))


def _pattern(kind: _Kind, path: str) -> str:
    """The pattern by which this kind would mark the path; '' where it would not."""
    for place in kind.paths:
        if path == place or (place.endswith("/") and path.startswith(place)):
            return f"{place}**" if place.endswith("/") else path
    *directories, file = path.split("/")
    for depth, directory in enumerate(directories, 1):
        if directory in kind.directories:
            return escaped("/".join(directories[:depth])) + "/**"
    return file if file in kind.files else ""


def escaped(path: str) -> str:
    """A pattern that matches this path alone."""
    return "".join(f"\\{char}" if char in "*?[\\" else char for char in path)


def from_history(changes: Iterable[PastCommit], paths: Iterable[str]) -> list[Suggestion]:
    """Suggestions of files that several authors changed in turn within days, the most frequent first."""
    known: set[str] = set(paths)
    last: dict[str, PastCommit] = {}
    meetings: dict[str, int] = {}
    authors: dict[str, set[str]] = {}
    for change in sorted(changes, key=lambda each: each.at):
        for path in known.intersection(change.paths):
            before = last.get(path)
            if before is not None and before.who != change.who and change.at - before.at <= DAYS * 86_400:
                meetings[path] = meetings.get(path, 0) + 1
                authors.setdefault(path, set()).update((before.who, change.who))
            last[path] = change
    often = sorted((path for path in meetings if meetings[path] >= _MEETINGS), key=lambda path: (-meetings[path], path))
    return [
        Suggestion(
            escaped(path if "/" in path else f"/{path}"),
            "history",
            f"{len(authors[path])} authors changed it in turn within {DAYS} days, {meetings[path]} times",
            1,
            LANDING,
        )
        for path in often[:_MOST]
    ]
