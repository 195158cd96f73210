"""Outcomes of a push, read from git's own output: each kind of failure is told apart, and a broken one is unknown."""

from __future__ import annotations

import pytest

from gitcoord.ledger.remote.git_remote import FAILED, LANDED, RACED, REJECTED, UNKNOWN, UNREACHABLE, parse_push

ROW = "\t1111:refs/heads/gitcoord\t"
FATAL = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n"
HUNG_UP = "send-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly\n"


@pytest.mark.parametrize(
    ("code", "out", "complaint", "kind"),
    [
        (0, f" {ROW}1111..2222\nDone\n", "", LANDED),
        (1, f"!{ROW}[rejected] (stale info)\n", "error: failed to push some refs\n", RACED),
        (1, f"!{ROW}[rejected] (fetch first)\n", "", RACED),
        (1, f"!{ROW}[remote rejected] (atomic transaction failed)\n", "", RACED),
        (1, f"!{ROW}[remote rejected] (pre-receive hook declined)\n", "remote: closed for today\n", REJECTED),
        (1, f"!{ROW}[remote rejected] (protected branch hook declined)\n", "remote: error: GH006\n", REJECTED),
        (1, f"!{ROW}[remote rejected] (unpacker error)\n", "remote: fatal: no space left on device\n", FAILED),
        (128, "", HUNG_UP, UNKNOWN),
        (1, "", "error: RPC failed; curl 52 Empty reply from server\n" + HUNG_UP, UNKNOWN),
        (-9, "", "", UNKNOWN),
        (0, "", "Everything up-to-date\n", UNKNOWN),
        (128, "", "ssh: connect to host example.com port 22: Connection refused\n" + FATAL, UNREACHABLE),
        (128, "", "git@example.com: Permission denied (publickey).\n" + FATAL, UNREACHABLE),
        (128, "", "fatal: unable to access 'https://example.com/': Could not resolve host\n", UNREACHABLE),
        (128, "", "fatal: 'nothing.git' does not appear to be a git repository\n" + FATAL, UNREACHABLE),
    ],
)
def test_what_came_of_it(code: int, out: str, complaint: str, kind: str) -> None:
    assert parse_push(code, out, complaint).kind == kind


def test_the_words_are_those_that_help() -> None:
    refused = "remote: closed for today        \nremote: \nTo example.com\nerror: failed to push some refs\n"
    assert parse_push(1, f"!{ROW}[remote rejected] (pre-receive hook declined)\n", refused).words == "closed for today"
    away = "ssh: connect to host example.com port 22: Connection refused"
    assert parse_push(128, "", f"{away}\n{FATAL}").words == away
    assert "Could not read from remote repository" in parse_push(128, "", FATAL).words, "better than nothing"
    assert "signal 13" in parse_push(-13, "", "").words, "a broken pipe has no words of its own"
    assert parse_push(128, "", "").words == "git ended with 128 and said nothing"
