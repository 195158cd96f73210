"""Opening a repository quickly: git's children start first and get ready while this process imports the rest."""

from __future__ import annotations

import gitcoord
from gitcoord.base.errors import GitcoordError, StoreError
from gitcoord.git.config import Settings, SettingsReader
from gitcoord.git.files import umask
from gitcoord.git.loose_reader import LooseReader
from gitcoord.git.plumbing_store import PlumbingStore
from gitcoord.git.process import Environ, reset_sigchld
from gitcoord.git.process import environ as own_environ
from gitcoord.git.repo import Repo, discover
from gitcoord.git.store import Store
from gitcoord.ledger.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.git.locks.owners import LockNotes
    from gitcoord.git.redo_log import DurableObjects
    from gitcoord.ledger.transaction import Authority


class RepositoryOpener:
    """A repository being opened. Errors are raised by `context`, whose caller reports them."""

    def __init__(self, environ: Environ, group: str, *, one_shot: bool = False) -> None:
        """`group` says what will be loaded: 'reading', 'gate', 'guard', or what a verb that writes needs.

        `one_shot`: the process exits after printing one result.
        """
        self._trouble: GitcoordError | None = None
        self._one_shot = one_shot
        self._writes = group not in ("reading", "gate", "guard")
        try:
            self._repo = discover(environ)
            self._config = SettingsReader(self._repo, environ)
            self._store = PlumbingStore(self._repo)
            self._store.open(writing=self._writes)
        except GitcoordError as error:
            self._trouble = error
        preload(group)

    def context(self, *, long_lived: bool = False) -> Context:
        """`long_lived`: the process pushes to a remote by itself, without `git push`."""
        if self._trouble is not None:
            raise self._trouble
        from gitcoord.git.host import Host
        from gitcoord.ledger.context import Context
        from gitcoord.world.client import ClientWorld

        host = Host(one_shot=self._one_shot)
        repo, settings = self._repo, self._config.read()
        if not repo.is_ours:
            _require_trust(repo)
        remote = _is_remote(settings)
        # Objects that a remote has acknowledged are safe there: the copies here need no fsync, like any fetch.
        durable = settings.flag("gitcoord.fsync", default=not remote)
        shared = _share(settings.get("core.sharedrepository").lower())

        def write_parts() -> tuple[DurableObjects, LockNotes]:
            from gitcoord.git.locks.owners import LockNotes
            from gitcoord.git.redo_log import DurableObjects

            logs, length = f"{repo.scratch}/redo", settings.oid_length
            objects = DurableObjects(repo.objects, length, logs, host.boot, shared=shared, durable=durable)
            return objects, LockNotes(repo.common_dir, repo.scratch, host.boot)

        self._store.configure(settings.oid_length, durable, _loose(repo, settings), write_parts)
        store: Store = self._store
        if remote:
            if self._writes:
                preload("remote")
            from gitcoord.git.locks.owners import LockNotes
            from gitcoord.ledger.remote.mirror_store import open_mirror

            notes = LockNotes(repo.common_dir, repo.scratch, host.boot)
            store = open_mirror(self._store, repo, settings, notes, long_lived=long_lived)
        return Context(repo, settings, store, host, ClientWorld, _remote_authority)


def open_repository(environ: Environ, *, writing: bool, long_lived: bool = False) -> Context:
    return RepositoryOpener(environ, "writing" if writing else "reading").context(long_lived=long_lived)


def _remote_authority(ctx: Context) -> Authority:
    from gitcoord.ledger.remote.transaction import RemoteAuthority  # only those who write where a remote decides

    return RemoteAuthority(ctx)


def _require_trust(repo: Repo) -> None:
    """git's own check of another user's repository (safe.directory), before anything is written there."""
    from gitcoord.git.commands.refs import git_dir

    git_dir(repo.env).require("git cannot read this repository", StoreError)


def _is_remote(settings: Settings) -> bool:
    return settings.get("gitcoord.authority", "local") != "local"


def _loose(repo: Repo, settings: Settings) -> LooseReader | None:
    """Read without git only what git would read: not another user's repository, nor another ref format than files."""
    if settings.get("extensions.refstorage", "files").lower() != "files" or not repo.is_ours:
        return None
    from gitcoord.git.loose_reader import LooseReader

    return LooseReader(repo, settings.oid_length)


def _share(wish: str) -> bool:
    """A repository that several users share: what we write must be theirs too, as with git itself."""
    if wish in ("", "umask", "false", "0"):
        return False
    old = umask(0o022)
    umask(old & ~(0o075 if wish in ("all", "world", "everybody", "2") else 0o070))
    return True


def preload(group: str) -> None:
    """Load the needed modules in one go, in the installed command."""
    load = getattr(gitcoord, "preload", None)
    if load is not None:
        load(group)


def environ() -> dict[bytes, bytes]:
    """The environment of a command, which is about to begin."""
    reset_sigchld()
    return dict(own_environ)
