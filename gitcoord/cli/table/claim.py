"""The rows of `git claim`, in a module of their own: `git claim` loads no other."""

from __future__ import annotations

from gitcoord.terminal.parser import NONCE, QUIET, REASON, NotQuick, Option, parse, row

HELP = """Claim paths before you change them.

git claim PATH... claims, git claim alone lists. A new path that is called like a verb, or whose directory does not exist
yet, is written after '--'; @name is a resource: a deploy target, a database, a GPU."""

VERBS = {
    "take": row(
        "Claim paths (or @resources): all of them or none.",
        "claims.cli:take",
        "[PATH...]",
        Option("mode", "read|intent|write", "What you want to do there; default: write."),
        Option("ttl", "duration", "The claim expires after this long without activity; default: 30m, or as it was."),
        Option("message", "text", "What for: shown to others who ask for the path.", "m", also="reason"),
        Option("task", "text", "The task this belongs to.", label="TASK"),
        Option("expect", "duration", "How long you think you need it."),
        Option("units", "number", "Units of a resource; default: 1, or as many as you hold."),
        Option("wait", "duration", "Wait in the queue up to this long instead of failing at once."),
        Option("queue", "flag", "Take a place in the queue and go on; your next command says when it is yours."),
        Option("priority", "critical|high|normal|low", "The class of the request in the queue; default: normal."),
        Option("leave", "flag", "Give up your place in the queue; without a path, every place of yours."),
        Option(
            "ticket",
            "number",
            "The request that --leave withdraws or --priority raises; a person may do both with anybody's, and -m says why.",
        ),
        NONCE,
        Option("dry-run", "flag", "Only tell whether it would be granted.", "n"),
        QUIET,
        example="src/app.py -m 'new login form'",
    ),
    "release": row(
        "Give paths back, with the commit that carries the work.",
        "claims.cli:release",
        "[PATH...]",
        Option("all", "flag", "Release everything you hold.", "a"),
        Option(
            "commit",
            "text",
            "The commit that carries the work; default: HEAD where the path changed.",
            label="COMMIT",
        ),
        Option("dirty", "flag", "Release in spite of uncommitted changes."),
        QUIET,
        example="release src/app.py",
        completes="claims",
    ),
    "renew": row(
        "Send a heartbeat now; with --ttl, change when the claims expire.",
        "claims.cli:renew",
        "[PATH...]",
        Option("ttl", "duration", "The new ttl of the claims named, or of all."),
        QUIET,
        example="renew --ttl 2h src/app.py",
        completes="claims",
    ),
    "list": row(
        "Show who holds what.",
        "claims.cli_views:list_",
        "",
        Option("mine", "flag", "Only your own claims."),
        Option("all", "flag", "Also claims whose holders were not active for too long.", "a"),
        example="list --mine",
        opens="read",
    ),
    "show": row(
        "Show everything about the claims on, above and below a path.",
        "claims.cli_views:show",
        "PATH",
        example="show src/app.py",
        opens="read",
    ),
    "check": row(
        "May I write here now? 0: yes, 1: no, 4: could not judge.",
        "claims.cli_views:check",
        "PATH...",
        QUIET,
        example="check -q src/app.py && make src/app.py",
        opens="read",
    ),
    "disown": row(
        "Clear the record of released work on a path: it was abandoned or rewritten.",
        "claims.cli:disown",
        "PATH",
        REASON,
        example="disown src/old.py --reason 'rewritten on main'",
    ),
    "takeover": row(
        "A person takes a live claim away, naming its token.",
        "claims.cli:takeover",
        "PATH",
        Option("token", "number", "The token of the claim, from 'git claim show'.", required=True),
        Option("force", "flag", "Yes, from a live holder.", required=True),
        REASON,
        example="takeover src/app.py --token 7 --force --reason 'on holiday'",
    ),
}


def expand(words: list[str]) -> list[str]:
    """The verb first. Without one: `take`, or `list` where these words are no `take`."""
    verb = next((word for word in words if word[:1] != "-" or word == "--"), "")
    if verb not in VERBS:
        return _guess(words)
    before = words[: words.index(verb)]  # `git claim --json list`, as after any git command
    flags = {f"--{option.name}" for option in VERBS[verb].options if option.kind == "flag"}
    return [verb, *before, *words[len(before) + 1 :]] if flags.issuperset(before) else _guess(words)


def _guess(words: list[str]) -> list[str]:
    if words[:1] in (["-h"], ["--help"], ["--version"]):
        return words
    for verb in ("take", "list"):
        try:
            _, values, paths = parse(VERBS, [verb, *words])
        except NotQuick:
            continue
        if verb == "list" or paths or values.get("leave") or "ticket" in values:
            return [verb, *words]
    return ["take", *words]
