"""Opening a repository quickly: git's children start first and get ready while this process imports the rest."""

import posix

import gitcoord
from gitcoord.store.plumbing import PlumbingStore
from gitcoord.store.process import heed_children
from gitcoord.store.repo import discover
from gitcoord.store.settings import SettingsReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.store.locks import LockNotes
    from gitcoord.store.objects import LooseObjects
    from gitcoord.store.process import Environ


def open_repository(environ: "Environ", *, writing: bool, tells: bool = False) -> "Context":
    repo = discover(environ)
    config = SettingsReader(repo, environ)
    store = PlumbingStore(repo)
    store.open(writing=writing)
    _preload("writing" if writing else "reading")

    from gitcoord.app.context import Context
    from gitcoord.hot.host import Host

    host = Host(tells=tells)
    settings = config.read()

    durable = settings.flag("gitcoord.fsync", default=True)
    shared = _share(settings.get("core.sharedrepository").lower())

    def write_parts() -> "tuple[LooseObjects, LockNotes]":
        from gitcoord.store.locks import LockNotes
        from gitcoord.store.objects import LooseObjects

        objects = LooseObjects(repo.objects, settings.oid_length, durable=durable, shared=shared)
        return objects, LockNotes(repo.common_dir, repo.scratch, host.boot)

    store.configure(settings.oid_length, durable, write_parts)
    return Context(repo, settings, store, host)


def _share(wish: str) -> bool:
    """A repository that several users share: what we write must be theirs too, as with git itself."""
    if wish in ("", "umask", "false", "0"):
        return False
    old = posix.umask(0o022)
    posix.umask(old & ~(0o075 if wish in ("all", "world", "everybody", "2") else 0o070))
    return True


def _preload(group: str) -> None:
    """In the installed command, load what will be needed in one go."""
    preload = getattr(gitcoord, "preload", None)
    if preload is not None:
        preload(group)


def environ() -> "dict[bytes, bytes]":
    """The environment of a command, which is about to begin."""
    heed_children()
    return dict(posix.environ)
