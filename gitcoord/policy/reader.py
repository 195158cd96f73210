"""Reading the policy of one commit: settings by `git config --blob`, attributes by `git check-attr`.

git reads attributes from the work tree, the index or (since 2.40) a commit, and always from `info/attributes` too, which any
local user can edit. So the attributes files of the commit go into a separate index, in a separate git directory that borrows the
repository's objects: only committed files count. Where the ledger folds case, names and patterns in that index are folded.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, Record, dumps, loads
from gitcoord.base.errors import CouldNotJudge
from gitcoord.base.names import CONFIG, RULES, fold
from gitcoord.git.commands.objects import check_attr, diff_names, ls_tree, write_blob
from gitcoord.git.config import parse_settings
from gitcoord.git.files import make_directory, read_file, remove_file, rename, write_file
from gitcoord.git.process import WHOLE
from gitcoord.ledger.context import Context
from gitcoord.policy.model import ATTRIBUTES, CORRECTED, Policy, is_attributes_file
from gitcoord.policy.parse import attributes_of, fold_patterns, parse_policy
from gitcoord.startup.annotations import Any, Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.policy.overlay import Overlay

_VERSION = 5  # of the cache
_SAME = 4  # commits with one policy that are cached together
_SPECS = (
    f":(top,literal){CONFIG}", f":(top,literal){RULES}", ":(top,icase).gitattributes", ":(top,icase)*/.gitattributes",
)  # fmt: skip


def staged_policy(ctx: Context, *, worktree: bool = False, index: str = "") -> str:
    """The tree of the index; with `worktree`, with the policy files of the work tree. `index`: that of a commit under way, which git may
    have locked."""
    from gitcoord.git.commands.worktrees import ls_files, update_index_from_files, write_tree

    env, copy = dict(ctx.repo.env), ""
    if worktree or index:
        data = read_file(index or f"{ctx.repo.git_dir}/index", 1 << 30)
        copy = ctx.scratch(f"explain/index-{ctx.host.random()[:8]}")
        if data:
            write_file(copy, data)
        env[b"GIT_INDEX_FILE"] = copy.encode("utf-8", "surrogateescape")
    if worktree:
        update_index_from_files(env, ls_files(env, *_SPECS, show="here").out)
    tree = write_tree(env)
    if copy:
        remove_file(copy)
    return tree.require("git cannot read what is staged").text


class Source:
    """The policy of one commit, '' for a repository without commits. `case`: the ledger folds case."""

    def __init__(self, ctx: Context, commit: str, *, case: bool = False) -> None:
        self._ctx = ctx
        self._case = case
        self.commit = commit
        self._place = f"{ctx.repo.scratch}/policy.git"
        self._private: Overlay | None = None
        self._record = self._find() if commit else {"settings": [], "telling": False}

    @property
    def pairs(self) -> list[tuple[str, str]]:
        rows: Any = self._record["settings"]
        return [(str(key), str(value)) for key, value in rows]

    @property
    def attribute_files(self) -> list[tuple[str, str]]:
        """The attributes files, each with its blob."""
        rows: Any = self._record.get("attributes", [])
        return [(str(path), str(blob)) for path, blob in rows]

    @property
    def rules(self) -> str:
        """The blob of the written rules; '' where there are none."""
        return str(self._record.get("rules", ""))

    @property
    def says_who_reads(self) -> bool:
        """Return whether any path may have `gitcoord-read`."""
        return bool(self._record.get("reads")) or self.overlay is not None

    @property
    def overlay(self) -> Overlay | None:
        """The private rules of this machine, which are in no commit; None where there are none."""
        if self._private is None and self._ctx.settings.get("gitcoord.overlay"):
            from gitcoord.policy.overlay_files import read_overlay

            self._private = read_overlay(self._ctx)
        return self._private

    def key(self, path: str) -> str:
        """The name under which attributes are looked up: the path, or the folded path."""
        return fold(path, case=True) if self._case else path

    def patterns(self, data: bytes) -> bytes:
        return fold_patterns(data) if self._case else data

    def policy(self, paths: Iterable[str]) -> Policy:
        """The settings, and the attributes of these paths."""
        present = bool(self._record["telling"] or self._record.get("config"))
        policy = parse_policy(self.pairs)._replace(
            attributes=self.attributes(paths),
            present=present,
            writers=bool(self._record.get("writers")),
            rules=self.rules,
        )
        if self.overlay is None:
            return policy
        from gitcoord.policy.overlay import tightened

        return tightened(policy, self.overlay)

    # --- attributes

    def attributes(self, paths: Iterable[str]) -> dict[str, Any]:
        return {path: attributes_of(values) for path, values in self.answers(paths).items()}

    def answers(self, paths: Iterable[str]) -> dict[str, dict[str, str]]:
        """The values of git's attributes for each path, with those of the private overlay."""
        found = self.committed_answers(paths)
        if self.overlay is None:
            return found
        from gitcoord.policy.overlay_files import add_private

        return add_private(self._ctx, self, self.overlay, found)

    def committed_answers(self, paths: Iterable[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {path: {} for path in paths}
        if not found or not self._record["telling"]:
            return found
        if read_file(f"{self._place}/objects/info/alternates", 8192) != self._alternates:
            self.make()  # the repository was moved
        code, out, complaint = check_attr(self._env(), ATTRIBUTES, [self.key(path) for path in found])
        words = out.decode("utf-8", "surrogateescape").split("\0")
        # Without the index git would report no attributes.
        if code or len(words) < 3 * len(ATTRIBUTES) * len(found) or not self._has_index():
            raise CouldNotJudge(f"git cannot read the attributes of {self.commit[:12]}: {complaint}")
        asked = [path for path in found for _ in ATTRIBUTES]
        for path, attribute, value in zip(asked, words[1::3], words[2::3]):
            found[path][attribute] = value
        return found

    def _has_index(self) -> bool:
        return read_file(f"{self._place}/{self._record['index']}", 4) == b"DIRC"

    def _env(self) -> dict[bytes, bytes]:
        place = self._place.encode("utf-8", "surrogateescape")
        index = f"{self._place}/{self._record['index']}".encode("utf-8", "surrogateescape")
        return {**self._ctx.repo.env, **WHOLE, b"GIT_DIR": place, b"GIT_INDEX_FILE": index, b"GIT_ATTR_NOSYSTEM": b"1"}

    # --- the cache

    def _find(self) -> Record:
        """The cached record of this commit, or of one with the same policy; else it is read."""
        file = f"{self._place}/remembered"
        try:
            old: Record | None = loads(read_file(file, 1 << 22))
        except Malformed:
            old = None
        if old is not None and self._fits(old):
            return old
        record = self._read()
        self._remember(record)
        return record

    def _remember(self, record: Record) -> None:
        """Write the cache. Where that fails, git is asked each time."""
        try:
            make_directory(self._place)
            write_file(f"{self._place}/remembered", dumps(record).encode())
        except OSError:
            pass

    def _fits(self, old: Record) -> bool:
        self._record = old
        if old.get("v") != _VERSION or old["case"] != self._case or (old["telling"] and not self._has_index()):
            return False
        same: Any = old.get("same", [])  # commits with this policy: trunk here and at the remote, a branch
        if self.commit in (old["commit"], *same):
            return True
        code, out, _ = diff_names(self._ctx.repo.env, old["commit"], self.commit, *_SPECS)
        if code or out:
            return False
        old["same"] = [old["commit"], *same][:_SAME]
        old["commit"] = self.commit
        self._remember(old)
        return True

    def _read(self) -> Record:
        answer = ls_tree(self._ctx.repo.env, self.commit)
        files, config, rules = [], "", ""
        for line in answer.require(f"the policy of {self.commit[:12]} cannot be read").entries:
            meta, _, path = line.partition("\t")
            if path == CONFIG:
                config = meta.split(" ")[2]
            elif path == RULES and " blob " in meta:
                rules = meta.split(" ")[2]
            elif is_attributes_file(path) and " blob " in meta:  # git ignores links and submodules too
                files.append([path, *meta.split(" ")[::2]])
        blobs = self._ctx.store.read([blob for _, _, blob in files])
        if any(blob is None for blob in blobs):
            raise CouldNotJudge(
                f"an attributes file of {self.commit[:12]} cannot be read", hints=("git fsck tells more",)
            )
        text = b"\n".join(blob.data for blob in blobs if blob is not None)
        telling = b"gitcoord" in text
        return {
            "v": _VERSION, "commit": self.commit, "case": self._case, "settings": self._settings(config),
            "config": config, "rules": rules, "telling": telling, "writers": b"gitcoord-writers" in text,
            "reads": b"gitcoord-read" in text,
            "attributes": [[path, blob] for path, _, blob in files], "index": self._index(files) if telling else "",
        }  # fmt: skip

    def _settings(self, blob: str) -> list[list[str]]:
        if not blob:
            return []
        from gitcoord.git.commands.settings import list_settings

        failure = f"{CONFIG} of {self.commit[:12]} cannot be read"
        answer = list_settings(self._ctx.repo.env, blob=blob).require(failure, hints=(CORRECTED,))
        return [list(pair) for pair in parse_settings(answer.out)]

    def _index(self, files: list[list[str]]) -> str:
        """Write an index of the attributes files; gives its name."""
        try:
            self.make()
        except OSError as error:
            raise CouldNotJudge(
                f"the attributes of {self.commit[:12]} cannot be asked for: {error.strerror}: {self._place}",
                hints=("gitcoord needs to write below the repository's git directory",),
            ) from None
        files = self._folded(files) if self._case else files
        name, temporary = f"index-{self.commit}", f"index-{self.commit}.{self._ctx.host.random()[:8]}"
        lines = "".join(f"{mode} {blob}\t{path}\0" for path, mode, blob in files)
        self._record = {"index": temporary}
        from gitcoord.git.commands.worktrees import update_index

        answer = update_index(self._env(), lines.encode("utf-8", "surrogateescape"))
        answer.require(f"the attributes of {self.commit[:12]} cannot be read")
        rename(f"{self._place}/{temporary}", f"{self._place}/{name}")
        return name

    def _folded(self, files: list[list[str]]) -> list[list[str]]:
        """The files with names and patterns folded; files of one folded name are joined."""
        texts: dict[str, list[bytes]] = {}
        for (path, _, _), blob in zip(files, self._ctx.store.read([blob for _, _, blob in files])):
            texts.setdefault(self.key(path), []).append(self.patterns(blob.data if blob is not None else b""))
        place = {**self._ctx.repo.env, b"GIT_DIR": self._place.encode("utf-8", "surrogateescape")}
        folded = []
        for key, parts in texts.items():
            made = write_blob(place, b"\n".join(parts)).require(f"the attributes of {self.commit[:12]} cannot be read")
            folded.append([key, "100644", made.text])
        return folded

    @property
    def _alternates(self) -> bytes:
        return self._ctx.repo.objects.encode("utf-8", "surrogateescape") + b"\n"

    def make(self) -> str:
        """Make the separate git directory; gives its path."""
        sha256 = self._ctx.store.oid_length == 64
        for directory in ("objects/info", "refs"):
            make_directory(f"{self._place}/{directory}")
        config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
        config += "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
        write_file(f"{self._place}/HEAD", b"ref: refs/heads/none\n")
        write_file(f"{self._place}/config", config.encode())
        write_file(f"{self._place}/objects/info/alternates", self._alternates)
        return self._place
