"""Objects for a repository on this machine go straight into it, where nobody there wants to see them first.

Its git would unpack each of them into a directory of its own, and move them from there one by one, which takes longer than most of
the rest of a small push. Refs are still moved by its git alone, once it has seen that all is there to which they lead.
"""

import posix

from gitcoord.errors import StoreError
from gitcoord.names import Oid
from gitcoord.store.files import exists, fingerprint, is_directory
from gitcoord.store.objects import LooseObjects
from gitcoord.store.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dulwich.objects import ShaFile

# Whoever says how objects are to be kept, shared or checked there, or who judges a push, gets them with the push.
_SAYS = r"^(core\.(sharedrepository|fsync.*|hookspath)|(receive|transfer)\.(fsckobjects|unpacklimit)|receive\.maxinputsize|extensions\.objectformat|hook\..*)$"
_JUDGES = ("pre-receive", "update", "proc-receive")
_OTHERS_WRITE = 0o022
_MANY = 100  # so many git keeps in a pack


class Straight:
    """The way into one repository, for ids of 40 digits."""

    def __init__(self, place: str) -> None:
        """`place` is the git directory itself."""
        self._place = place
        self._objects = f"{place}/objects"
        self._settings = fingerprint(f"{place}/config")
        self._taken: list[Oid] = []

    def is_open(self) -> bool:
        """Is it this user's alone, and does nobody there judge? Whoever comes later is heard, too."""
        try:
            found = posix.stat(self._objects)
        except OSError:
            return False
        mine = found.st_uid == posix.geteuid() and not found.st_mode & _OTHERS_WRITE
        judged = any(exists(f"{self._place}/hooks/{name}") for name in _JUDGES)
        return mine and not judged and fingerprint(f"{self._place}/config") == self._settings

    def deliver(self, objects: "list[ShaFile]") -> "list[ShaFile]":
        """Put them in their places, each after what it refers to; gives those that are to be sent after all."""
        self._taken = []
        if len(objects) >= _MANY or not self.is_open():
            return objects
        loose = LooseObjects(self._objects, 40, durable=False, shared=False)
        try:
            taken = [loose.write(found.type_name.decode(), found.as_raw_string()) for found in objects]
            loose.publish()
        except StoreError:
            return objects
        self._taken = taken
        return []

    def lacks_some(self) -> bool:
        """Is something that it took last not where it was put?"""
        return not all(exists(f"{self._objects}/{oid[:2]}/{oid[2:]}") for oid in self._taken)


def way_into(path: str, env: "dict[bytes, bytes]") -> "Straight | None":
    """None where it is not open, or its settings say otherwise, or cannot be told."""
    place = f"{path}/.git" if exists(f"{path}/.git") else path  # as git looks, but for what leads elsewhere
    parts = (place, f"{place}/objects", f"{place}/refs")
    if not path.startswith("/") or not all(is_directory(part) for part in parts) or not exists(f"{place}/HEAD"):
        return None
    if exists(f"{place}/commondir"):
        return None
    straight = Straight(place)
    if not straight.is_open():
        return None
    code, said, _ = run(["git", f"--git-dir={place}", "config", "--get-regexp", _SAYS], env)
    return straight if code == 1 and not said else None
