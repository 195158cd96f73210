"""Is there work beside that of this work tree? Told from a few files, so that a clone with one work tree pays nothing for early warnings."""

from __future__ import annotations

from zlib import crc32

from gitcoord.git.files import fingerprint, is_directory, list_files, read_file
from gitcoord.ledger.context import Context

_DEEP = 8
_SMALL = 1 << 16  # bytes of packed-refs


def around(ctx: Context, trunk: str) -> str:
    """A mark that differs whenever a branch beside trunk, or a linked work tree, came, went or moved; '' where there is none."""
    repo = ctx.repo
    trees = sorted(list_files(f"{repo.common_dir}/worktrees"))
    own = read_file(f"{repo.git_dir}/HEAD").decode("utf-8", "surrogateescape").strip()
    skipped = {f"refs/heads/{trunk}", "refs/heads/gitcoord", *(() if trees else (own.removeprefix("ref: "),))}
    below = ["refs/heads", *([f"refs/remotes/{ctx.remote}"] if ctx.remote else [])]
    skipped |= {f"{below[-1]}/{name}" for name in ("HEAD", trunk, "gitcoord")}
    found = [row for directory in below for row in _loose(repo.common_dir, directory, skipped, _DEEP)]
    packed = _packed(repo.common_dir, below, skipped)
    if ctx.settings.get("extensions.refstorage", "files").lower() != "files":
        packed = str(fingerprint(f"{repo.common_dir}/reftable/tables.list"))
    if not (trees or found or packed):
        return ""
    return f"{crc32(repr((trees, found, packed)).encode('utf-8', 'surrogatepass')):08x}"


def _loose(common: str, directory: str, skipped: set[str], deep: int) -> list[str]:
    """The refs below this directory that lie in files of their own, each with its commit."""
    found = []
    for name in sorted(list_files(f"{common}/{directory}")):
        ref = f"{directory}/{name}"
        if ref in skipped or ref.startswith(("refs/heads/gitcoord-sessions",)) or name.endswith(".lock"):
            continue
        if is_directory(f"{common}/{ref}"):
            found += _loose(common, ref, skipped, deep - 1) if deep else [ref]
        else:
            found.append(f"{ref} {read_file(f'{common}/{ref}', 200).decode('ascii', 'replace')}")
    return found


def _packed(common: str, below: list[str], skipped: set[str]) -> str:
    """The packed refs below these; of a large file a mark of the whole, since reading it would cost more than it tells."""
    path = f"{common}/packed-refs"
    data = read_file(path, _SMALL).decode("utf-8", "surrogateescape")
    if len(data) >= _SMALL:
        return str(fingerprint(path))
    rows = [row for row in data.split("\n") if row.partition(" ")[2].startswith(tuple(f"{name}/" for name in below))]
    return "\n".join(row for row in rows if row.partition(" ")[2] not in skipped)
