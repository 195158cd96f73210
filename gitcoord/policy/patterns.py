"""Matching paths against patterns of `.gitattributes`, by git itself."""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge
from gitcoord.git.commands.objects import check_attr
from gitcoord.git.files import remove_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.startup.annotations import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.reader import Source


def words_for(
    ctx: Context, source: Source, lines: list[str], attributes: list[str], paths: Iterable[str]
) -> dict[str, dict[str, str]]:
    """The attributes of each path, where these lines are the only attributes file."""
    names = list(paths)
    found: dict[str, dict[str, str]] = {path: {} for path in names}
    if not names or not lines:
        return found
    place = ctx.scratch(f"explain/attributes-{ctx.host.random()[:12]}")
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    env = {
        **ctx.repo.env,
        b"GIT_DIR": source.make().encode("utf-8", "surrogateescape"),
        b"GIT_INDEX_FILE": b"/nonexistent/index",
        b"GIT_ATTR_NOSYSTEM": b"1",
    }
    write_file(place, source.patterns(text))
    try:
        code, out, complaint = check_attr(env, attributes, [source.key(name) for name in names], place)
    finally:
        remove_file(place)
    words = out.decode("utf-8", "surrogateescape").split("\0")
    if code or len(words) < 3 * len(attributes) * len(names):
        raise CouldNotJudge(f"git cannot match the patterns of the policy: {complaint}")
    asked = [name for name in names for _ in attributes]
    for name, attribute, value in zip(asked, words[1::3], words[2::3]):
        found[name][attribute] = value
    return found


def line_of(pattern: str, *words: str) -> list[str]:
    """The lines that set these attributes for a pattern; a plain name also matches everything below it."""
    patterns = [pattern]
    if not {"*", "?", "["} & set(pattern):
        patterns = [pattern.rstrip("/"), f"{pattern.strip('/')}/**"]
    return [f"{_quoted(each)} {' '.join(words)}" for each in patterns if each]


def _quoted(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def matching(ctx: Context, source: Source, groups: list[list[str]], paths: Iterable[str]) -> list[list[str]]:
    """For each group of patterns the paths that one of them matches; an empty group matches all."""
    names = list(paths)
    lines = [
        line for number, patterns in enumerate(groups) for each in patterns for line in line_of(each, f"group{number}")
    ]
    attributes = [f"group{number}" for number in range(len(groups))]
    found = words_for(ctx, source, lines, attributes, names)
    return [
        [name for name in names if not patterns or found[name].get(f"group{number}") == "set"]
        for number, patterns in enumerate(groups)
    ]
