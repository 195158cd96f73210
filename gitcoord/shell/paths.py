"""Paths as text: joining, normalising, and recognising devices."""

# Reading and writing these touches no file. '/dev/tcp' and '/dev/udp' are bash's own.
from __future__ import annotations

_DEVICES = ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/random",
            "/dev/urandom")  # fmt: skip
_DEVICE_DIRS = ("/dev/pts/", "/dev/tcp/", "/dev/udp/")
_DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")


def normal(path: str) -> str:
    """An absolute path without '.', '..' and doubled slashes. As `cd` sees it: symbolic links are not followed."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def join(base: str, path: str) -> str:
    return normal(path if path.startswith("/") else f"{base}/{path}")


def base_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def dir_name(path: str) -> str:
    """The directory of a path, as dirname(1) prints it."""
    head, slash, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if slash else ".")


def is_device(path: str) -> bool:
    return path in _DEVICES or path.startswith((*_DEVICE_DIRS, *_DESCRIPTORS))


def is_below_descriptor(path: str) -> bool:
    """Return whether this is below an open directory, whose name is unknown."""
    return path.startswith(_DESCRIPTORS) and "/" in path.partition("/fd/")[2]


def in_git_dir(path: str) -> bool:
    return ".git" in path.split("/")
