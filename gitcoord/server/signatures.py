"""Signatures of ledger commits: git's own ssh format, checked by `ssh-keygen -Y verify` against the server's own list.

An event counts as its agent's only if a key listed for just that name signed the commit. Which keys are listed now is what
counts, whatever date the commit gives: a key is revoked by taking it off the list.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, refused
from gitcoord.base.names import printable
from gitcoord.git.files import exists, remove_file, write_file
from gitcoord.git.process import run
from gitcoord.ledger.context import Context

SIGNERS = "allowed_signers"
SETTING = "gitcoord.server.signing"
_HEADERS = (b"gpgsig ", b"gpgsig-sha256 ")


def split_signature(data: bytes) -> tuple[bytes, bytes]:
    """A commit's bytes without its signature, and the signature; b'' where it has none."""
    head, _, message = data.partition(b"\n\n")
    kept: list[bytes] = []
    signature: list[bytes] = []
    inside = False
    for line in head.split(b"\n"):
        if line.startswith(_HEADERS) and not signature:
            inside = True
            signature.append(line.partition(b" ")[2])
        elif inside and line.startswith(b" "):
            signature.append(line[1:])
        else:
            inside = False
            kept.append(line)
    return b"\n".join(kept) + b"\n\n" + message, b"\n".join(signature)


def signing_on(ctx: Context) -> bool:
    wish = ctx.settings.get(SETTING)
    if wish not in ("", "off", "ssh"):
        raise CouldNotJudge(f"{SETTING} is '{printable(wish)}', not 'ssh' or 'off'")
    return wish == "ssh"


def require_signature(ctx: Context, payload: bytes, signature: bytes, agent: str, seq: int) -> None:
    """Raise Refused unless a key that is listed for this agent signed these bytes."""
    if not signature or not agent:
        raise refused(
            "signature",
            f"event {seq} of '{agent}' is not signed, and this server takes signed events only",
            "sign them: git config gitcoord.signing ssh",
        )
    signers = f"{ctx.repo.scratch}/{SIGNERS}"
    if not exists(signers):
        raise CouldNotJudge(
            "the server knows no keys",
            hints=("its administrator adds them: git coord server key add <repository> <agent> <key-file>",),
        )
    file = ctx.scratch(f"signature-{ctx.host.random()[:16]}")
    write_file(file, signature + b"\n")
    try:
        argv = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", agent, "-n", "git", "-s", file]
        code, _, _ = run(argv, ctx.repo.env, payload)
    finally:
        remove_file(file)
    if code:
        raise refused(
            "signature",
            f"event {seq} is not signed by a key that the server knows as that of '{agent}'",
            "the server's administrator looks after keys: git coord server key list <repository>",
        )
