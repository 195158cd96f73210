"""Names: object ids, full ref names, agents, paths and resources, how they are shown, and the one-to-one encoding of paths into ref and
tree components.

A component is percent-encoded wherever git or a file system could refuse or confuse it. A leaf is always `@<agent>`
and no encoded component begins with a bare `@`, so a claim on a directory and one on a file below it never clash.
Paths are `str` with undecodable bytes as surrogates, as everywhere in Python.
"""

from __future__ import annotations

from gitcoord.base.errors import UsageError

Oid = str
RefName = str

LEDGER = "refs/heads/gitcoord"
PRIVATE = "refs/gitcoord/"  # what is gitcoord's own, besides the ledger and claims
TIP = PRIVATE + "tip"
SESSIONS = PRIVATE + "sessions/"
CLAIMS = "refs/claims/"
CONFIG = ".gitcoord/config"  # the project's settings, in its tree
RULES = ".gitcoord/rules.md"  # and its written rules
LOST = PRIVATE + "lost/"
KEPT = PRIVATE + "kept/"  # content of files before and after a command that changed them
ARCHIVE = "refs/gitcoord-archive/"  # ledgers that were taken away
PROBE = PRIVATE + "probe/"
IN_LANE = "@lane/"  # a resource, as shown: a path that a landing in the lanes changes. Views leave these claims out.
LANDING = ("@land/", IN_LANE)  # these, and the turns of landings
LANES = PRIVATE + "lanes/"  # at a remote: commits that are checked in lanes, by their id

PATH, RESOURCE = "path", "resource"
ROOT = "."

# 255 bytes is the usual limit of a file name; git adds ".lock" and we add "%+" to a piece that goes on.
_PIECE = 240
# The ref's file must fit PATH_MAX (4096) below the git directory.
_MAX_REF = 3000
_ALNUM = "abcdefghijklmnopqrstuvwxyz0123456789"
_AGENT = frozenset(_ALNUM + "._-")
_TOKEN = frozenset(_ALNUM + _ALNUM.upper() + "._-")
_PLAIN = _TOKEN | frozenset("/@%+=:,")
_SPECIAL = frozenset(' ~^:?*[\\%"<>|\x7f') | frozenset(map(chr, range(32)))
_HFS_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)  # code points that HFS+ drops when it compares names


def is_oid(text: str, length: int = 0) -> bool:
    """An object id: of this length, or of either kind."""
    return len(text) in ((length,) if length else (40, 64)) and not text.strip("0123456789abcdef")


# --- names in messages and hints -----------------------------------------------------------------------------------


def quote(text: str) -> str:
    """`text` between quotes, with characters that could confuse a terminal escaped."""
    return "'" + printable(text) + "'"


def printable(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def shell_word(word: str) -> str:
    """`word` as a shell would take it back: hints are pasted, also by machines."""
    if word and word[0] != "-" and _PLAIN.issuperset(word):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\\''") + "'"
    escaped = "".join(c if c.isprintable() and c not in "\\'" else _escape(c) for c in word)
    return f"$'{escaped}'"


def _escape(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def shown(name: str, space: str) -> str:
    """A path, a resource or a task's id as people and JSON see it."""
    return "@" + name if space == RESOURCE else name


def listed(names: list[str], most: int = 5) -> str:
    """The first names, printable, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return printable(", ".join(names[:most])) + more


# --- agents and other words ------------------------------------------------------------------------------------------


def check_agent(name: str) -> str:
    bad = (
        not name
        or len(name) > 64
        or name[0] not in _ALNUM
        or not _AGENT.issuperset(name)
        or ".." in name
        or name.endswith((".", ".lock"))
    )
    if bad:
        raise UsageError(
            f"{quote(name[:80])} is not an agent name",
            hints=("use 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, no '..', no '.lock' at the end",),
        )
    return name


def check_word(name: str, what: str, limit: int = 128) -> str:
    """A nonce, task id or the like: something that is safe in a ref, a file name and a terminal."""
    if not name or len(name) > limit or not _TOKEN.issuperset(name) or name[0] in ".-":
        raise UsageError(f"{quote(name[:80])} is not a {what}", hints=(f"use 1 to {limit} of A-Z a-z 0-9 . _ -",))
    return name


def agent_from_email(email: str) -> str:
    """The person's name from an email, one to one: '_' begins an escape, '@' is `_at_`. Over-long ones end in a hash."""
    text = email.strip().lower()
    out = []
    for index, char in enumerate(text):
        if char == "@":
            out.append("_at_")
        elif char in _ALNUM or char == "-" or (char == "." and text[index + 1 : index + 2] not in ("", ".")):
            out.append(char)
        else:
            out += [f"_{byte:02x}" for byte in char.encode("utf-8", "surrogateescape")]
    name = "".join(out)
    if not name:
        raise UsageError("user.email is empty", hints=("set GITCOORD_AGENT, or git config user.email",))
    if name.endswith(".lock"):
        name = name[:-5] + "_2elock"
    if name[0] not in _ALNUM:
        name = "x_x" + name
    if len(name) > 64:
        from zlib import crc32

        name = f"{name[:45]}_h{crc32(name.encode()):08x}{crc32(name[::-1].encode()):08x}"
    return check_agent(name)


# --- paths -------------------------------------------------------------------------------------------------------


def check_path(path: str) -> str:
    """`path` as git would name it, below the top of the work tree: no '..', no '.git', ROOT for the top itself."""
    try:
        if b"\0" in path.encode("utf-8", "surrogateescape"):
            raise UsageError(f"{quote(path[:80])} holds a NUL byte")
    except UnicodeEncodeError:
        raise UsageError(f"{quote(path[:80])} is not text that could name a file") from None
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                hint = "give a path inside this work tree; each repository has its own claims"
                raise UsageError(f"{quote(path[:80])} is outside the repository", hints=(hint,))
            parts.pop()
        else:
            parts.append(part)
    for part in parts:
        if _is_dot_git(part):
            raise UsageError(f"{quote(path[:80])} lies in git's own directory", hints=("claim files of the project",))
    clean = "/".join(parts) or ROOT
    # Encoding never makes a name shorter: what is far too long is not encoded first.
    if len(clean) > _MAX_REF or len("/".join(encode(part) for part in parts).encode()) > _MAX_REF:
        raise UsageError(f"{quote(path[:80])}... is too long for a claim", hints=("claim a directory above it",))
    return clean


def _is_dot_git(part: str) -> bool:
    """git's own directory, also as a case-folding, HFS+ or NTFS file system would understand the name."""
    for name in part.translate(_HFS_IGNORED).lower().split("\\"):
        if name.split(":", 1)[0].rstrip(". ") in (".git", "git~1"):
            return True
    return False


def check_resource(name: str) -> str:
    """The name of a resource, without its leading '@'."""
    parts = name.split("/")
    if len(name) > 200 or not all(p and p[0] not in ".-" and _TOKEN.issuperset(p) for p in parts):
        raise UsageError(
            f"{quote('@' + name[:80])} is not a resource name",
            hints=("words of A-Z a-z 0-9 . _ - joined by '/'; a path that begins with '@' is written ./@name",),
        )
    return name


def fold(path: str, *, case: bool) -> str:
    """The conflict key of a path: one Unicode form always, one case where the ledger's format says so."""
    if path.isascii():
        return path.lower() if case else path
    from unicodedata import normalize

    key = normalize("NFC", path)
    return normalize("NFC", key.casefold()) if case else key


def covers(above: str, below: str) -> bool:
    """Return whether `below` is the path `above` or below it. Both are conflict keys."""
    return above == ROOT or above == below or below.startswith(above + "/")


def ancestors(key: str) -> list[str]:
    """The paths above `key`, from ROOT down, without `key` itself."""
    if key == ROOT:
        return []
    parts = key.split("/")
    return [ROOT, *("/".join(parts[:i]) for i in range(1, len(parts)))]


# --- components --------------------------------------------------------------------------------------------------


def encode(component: str) -> str:
    """One path component as one or, where it is over-long, several ref components joined by '%+/'."""
    if not component:
        raise ValueError("a path has an empty component")
    if component.isascii() and len(component) <= _PIECE and _SPECIAL.isdisjoint(component):
        if ".." not in component and "@{" not in component:
            return _guard(component)
    units = []
    before = ""
    for index, char in enumerate(component):
        confusing = (char == "." == before) or (char == "@" and component[index + 1 : index + 2] == "{")
        if confusing or char in _SPECIAL or "\udc80" <= char <= "\udcff" or "\x80" <= char <= "\x9f":
            units.append("".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape")))
        else:
            units.append(char)
        before = char
    pieces, piece, size = [], "", 0
    for unit in units:
        length = len(unit.encode("utf-8"))
        if size + length > _PIECE:
            pieces.append(piece)
            piece, size = "", 0
        piece += unit
        size += length
    pieces.append(piece)
    return "%+/".join(_guard(p) for p in pieces)


def _guard(piece: str) -> str:
    """Escape what only its place makes dangerous: the first byte, a last '.' or '.lock'."""
    if piece[0] in ".-@":
        piece = f"%{ord(piece[0]):02X}{piece[1:]}"
    if piece.endswith(".lock"):
        piece = piece[:-5] + "%2Elock"
    elif piece.endswith("."):
        piece = piece[:-1] + "%2E"
    return piece


def encode_path(path: str) -> str:
    """A path's components, encoded and joined; '' for the root."""
    return "" if path == ROOT else "/".join(encode(part) for part in path.split("/"))


# --- files and refs of the ledger --------------------------------------------------------------------------------


def claim_dir(space: str, key: str) -> str:
    """The directory of claims on `key` in the ledger's tree; their refs are below `refs/` + this."""
    encoded = encode_path(key)
    return f"claims/{space}/{encoded}" if encoded else f"claims/{space}"


def claim_file(space: str, key: str, agent: str) -> str:
    return f"{claim_dir(space, key)}/@{agent}"


def session_ref(agent: str) -> RefName:
    return SESSIONS + agent
