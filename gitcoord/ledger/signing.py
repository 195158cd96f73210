"""Signing one's own events, where the server wants them signed: git's ssh format, with the agent's own key."""

from __future__ import annotations

from gitcoord.base.errors import StoreError, UsageError
from gitcoord.git.process import run
from gitcoord.ledger.context import Context


def signed(ctx: Context, commit: bytes, agent: str) -> bytes:
    """The commit with a signature of `agent` over all the rest of it; as it is where nobody asks for one."""
    wish = ctx.settings.get("gitcoord.signing")
    if wish in ("", "off"):
        return commit
    if wish != "ssh":
        raise UsageError(f"gitcoord.signing is '{wish}'", hints=("ssh, or off",))
    key = (ctx.settings.get("gitcoord.signingkey") or ctx.settings.get("user.signingkey")).replace("{agent}", agent)
    if not key:
        raise UsageError(
            "events are to be signed, and no key is named", hints=("git config gitcoord.signingKey <file>",)
        )
    if key.startswith("~/"):
        key = ctx.repo.env.get(b"HOME", b"").decode("utf-8", "surrogateescape") + key[1:]
    code, out, complaint = run(["ssh-keygen", "-Y", "sign", "-n", "git", "-f", key], ctx.repo.env, commit)
    if code or not out.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise StoreError(f"the event could not be signed with {key}: {complaint}", hints=("nothing was changed",))
    head, _, message = commit.partition(b"\n\n")
    header = b"gpgsig " if ctx.store.oid_length == 40 else b"gpgsig-sha256 "
    return head + b"\n" + header + out.rstrip(b"\n").replace(b"\n", b"\n ") + b"\n\n" + message
