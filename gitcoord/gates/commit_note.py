"""The note that pre-commit leaves for the later hooks of the same `git commit`, so that they need not start git-claim.

docs/adr/0043 says what it covers. githooks/gate.sh (`noted`) and githooks/reference-transaction (`judged`) read it. Its lines: the
git process and its start time; the second of /proc/uptime at which the note expires; the agent for the trailer, empty for a person;
the refs on which the answer depends; their values, 'none' for a missing one; HEAD; and the output of `git diff-tree` for the commit.
"""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError
from gitcoord.base.names import LEDGER, TIP, session_ref
from gitcoord.gates.client_gate import Clean
from gitcoord.git.files import read_file, write_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import KILLED, Actor, agent_records
from gitcoord.ledger.snapshot import parse_heartbeat, read_snapshot
from gitcoord.sessions.admission import halt_record
from gitcoord.sessions.identity import NOBODY

NOTED_MERGES = "refused-merges"  # the notes of `refused_merge.py`, in the scratch directory
_SECONDS = 10
_MOST = 100  # changed files: sh reads byte by byte, so a longer note takes as long as starting git-claim
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}


def leave_note(ctx: Context, process: str, actor: Actor, clean: Clean) -> None:
    """Write the note for the git process `process`. If that fails, the later hooks judge by themselves."""
    words = clean.staged.split(b"\0")
    if len(words) > 2 * _MOST + 1:
        return
    try:
        session = session_ref(actor.agent)
        found = ctx.store.read([session])[0]
        beat = parse_heartbeat(found) if found is not None else None
        if beat is not None and beat.killed:
            return
        seconds = min(_SECONDS, beat.slot // 1000) if beat is not None else _SECONDS
        uptime = read_file("/proc/uptime").partition(b".")[0]
        agent = "" if actor.person or actor == NOBODY else actor.agent
        lines = [
            process, str(int(uptime) + seconds), agent,
            f"{LEDGER} {session}", f"{clean.ledger} {found.oid if found is not None else 'none'}", clean.head,
            clean.head, agent, "", *(f"{meta.decode()}\t{_quote(path)}" for meta, path in zip(words[::2], words[1::2])),
        ]  # fmt: skip
        tree = "" if ctx.repo.git_dir == ctx.repo.common_dir else "-" + ctx.repo.git_dir.rpartition("/")[2]
        write_file(ctx.scratch(f"judged{tree}"), "".join(f"{line}\n" for line in lines).encode())
    except (GitcoordError, OSError, ValueError):
        pass


def leave_quiet_note(ctx: Context, tracking: str) -> None:
    """Note the ledger in which nobody is killed or halted: the next pull of what landed is not judged as long as it stands there.

    `landed` in githooks/reference-transaction reads it. Its lines: the ledger's head, its tip, and the ref of trunk at its remote.
    """
    try:
        snapshot = read_snapshot(ctx)
        state, tip = snapshot.state, ctx.store.resolve([TIP])[0]
        if tip is None or halt_record(state) is not None or len(state.below("agents")) > _MOST:
            return
        if not any(record.state == KILLED for record in agent_records(state)):
            write_file(ctx.scratch("quiet"), f"{snapshot.head}\n{tip}\n{tracking}\n".encode())
    except (GitcoordError, OSError):
        pass


def _quote(path: bytes) -> str:
    """The path as git prints it with core.quotePath."""
    text = "".join(
        f"\\{_ESCAPES[byte]}" if byte in _ESCAPES else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in path
    )
    return text if text.encode() == path else f'"{text}"'
