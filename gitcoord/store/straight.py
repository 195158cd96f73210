"""Objects for a repository on this machine go straight into it, where nobody there wants to see them first.

Its git would unpack each of them into a directory of its own, and move them from there one by one, which takes longer than most of
the rest of a small push. Refs are still moved by its git alone, once it has seen that all is there to which they lead.
"""

import posix

from gitcoord.errors import StoreError
from gitcoord.store.files import exists, is_directory
from gitcoord.store.objects import LooseObjects
from gitcoord.store.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dulwich.objects import ShaFile

# Whoever says how objects are to be kept, shared or checked there, or who judges a push, gets them with the push.
_SAYS = r"^(core\.(sharedrepository|fsync.*|hookspath)|(receive|transfer)\.fsckobjects|receive\.maxinputsize|hook\..*)$"
_JUDGES = ("pre-receive", "update", "proc-receive")
_OTHERS_WRITE = 0o022


class Straight:
    """The way into one repository, for ids of 40 digits."""

    def __init__(self, objects: str) -> None:
        self._objects = objects

    def deliver(self, objects: "list[ShaFile]") -> "list[ShaFile]":
        """Put them in their places, each after what it refers to; gives those that are to be sent after all."""
        loose = LooseObjects(self._objects, 40, durable=False, shared=False)
        try:
            for found in objects:
                loose.write(found.type_name.decode(), found.as_raw_string())
            loose.publish()
            return []
        except StoreError:
            return objects

    def lacks(self, objects: "list[ShaFile]") -> bool:
        """Is one of them not where it was put?"""
        return not all(
            exists(f"{self._objects}/{oid[:2]}/{oid[2:]}") for oid in (found.id.decode() for found in objects)
        )


def way_into(path: str, env: "dict[bytes, bytes]") -> "Straight | None":
    """None where it is not this user's alone, or says otherwise, or cannot be told."""
    place = next((p for p in (f"{path}/.git", path) if is_directory(p)), "")  # in git's order
    objects = f"{place}/objects"
    if not path.startswith("/") or not is_directory(objects) or exists(f"{place}/commondir"):
        return None
    found = posix.stat(objects)
    if found.st_uid != posix.geteuid() or found.st_mode & _OTHERS_WRITE:
        return None
    if any(exists(f"{place}/hooks/{name}") for name in _JUDGES):
        return None
    code, said, _ = run(["git", f"--git-dir={place}", "config", "--get-regexp", _SAYS], env)
    return Straight(objects) if code == 1 and not said else None
