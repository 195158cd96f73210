"""The rows of `git coord` for setting up and for everyday work."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, QUIET, Option, Verb

_BY = Option("agent", "text", "Only what is by or about this agent.", label="AGENT")
_TOUCHES = Option("path", "text", "Only what touches this path.", label="PATH")
_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")
_USER = Option("user", "flag", "In your own settings of the agent tools, not in the project's.")
_YES = Option("yes", "flag", "Do not ask.", "y")
_ABOUT = Option("path", "texts", "A path that it is about; may be given again.", label="PATH")

_START = {
    "setup": Verb(
        "Set gitcoord up in one step: ledger, policy, hooks, tools.",
        "git coord setup --dry-run",
        "cli.setup:setup",
        "",
        (
            _YES,
            _DRY_RUN,
            Option("tool", "texts", "Set up this agent tool, found or not; may be given again.", label="TOOL"),
            Option("no-tools", "flag", "Leave the agent tools alone."),
            _USER,
            JSON,
        ),
        life="work",
        quick=False,  # the hooks are installed with the full interpreter
        group="start here",
    ),
    "init": Verb(
        "Make the ledger, here or at a remote; a repeat is harmless.",
        "git coord init --policy",
        "ledger.cli_init:init",
        "",
        (
            Option("policy", "flag", "Also write a commented starter policy."),
            Option("sync", "text", "Trunk: the branch on which work lands; default: the current one.", label="BRANCH"),
            Option("fold-case", "flag", "Paths that differ in case only conflict; default: core.ignoreCase."),
            Option("no-fold-case", "flag", "Paths that differ in case only do not conflict."),
            Option("adopt", "flag", "Make the ledger of a copied repository this one's own."),
            Option("remote", "text", "Let this remote decide: for clones on many machines.", label="REMOTE"),
            Option("same", "flag", "With --remote: its address is another one of the ledger's own server."),
            Option("read-only", "flag", "With --remote: only look at its ledger, as CI does."),
            JSON,
        ),
        life="work",
        group="start here",
    ),
    "start": Verb(
        "Open your session, and be told all there is to know.",
        "git coord start",
        "sessions.cli:start",
        "",
        (
            Option("brief", "flag", "For a small context: headlines and numbers.", "b"),
            Option("join", "flag", "Join a session that another process of this name has open."),
            JSON,
        ),
        group="start here",
    ),
    "run": Verb(
        "Launch an agent; its claims are released when it ends.",
        "git coord run --as alice -- claude",
        "sessions.cli_run:run",
        "-- COMMAND...",
        (Option("as", "text", "The agent's name; default: made up from the command.", label="NAME"),),
        life="stay",
        quick=False,  # dulwich
        group="start here",
    ),
    "demo": Verb(
        "Show what gitcoord does, in a throw-away repository.",
        "git coord demo",
        "cli.demo:demo",
        opens="none",
        quick=False,  # it starts Python itself
        group="start here",
    ),
    "teardown": Verb(
        "Take gitcoord out of this repository; the ledger is kept.",
        "git coord teardown --dry-run",
        "cli.setup:teardown",
        "",
        (
            _YES,
            _DRY_RUN,
            Option("force", "flag", "For a person: although somebody holds claims."),
            Option("user", "flag", "Also out of your own settings of the agent tools."),
            JSON,
        ),
        life="work",
        quick=False,
        group="start here",
    ),
}

_EVERYDAY = {
    "status": Verb(
        "Show claims and agents at a glance.",
        "git coord status",
        "views.cli:status",
        "",
        (JSON,),
        "read",
        group="everyday",
    ),
    "commit": Verb(
        "Commit exactly these files, whatever anybody has staged.",
        "git coord commit -m 'login: new form' -- src/login.py",
        "worktrees.cli:commit",
        "-- FILE...",
        (
            Option("message", "texts", "The message; again: one more paragraph.", "m"),
            Option("file", "text", "Take the message from a file, '-': stdin.", "F", label="FILE"),
            Option("trailer", "texts", "Add a trailer to the message.", label="KEY=VALUE"),
            Option("force", "flag", "Commit ignored files too.", "f"),
            QUIET,
            JSON,
        ),
        life="work",
        group="everyday",
    ),
    "sync": Verb(
        "Tell whether the current branch has all that landed.",
        "git coord sync --pull",
        "deploy.cli:sync",
        "",
        (
            Option("pull", "flag", "Bring the current branch up to date, where that is clean."),
            Option("fetch", "flag", "Ask the remote what is new there; the default."),
            Option("no-fetch", "flag", "Go by what was fetched before."),
            JSON,
        ),
        life="work",
        group="everyday",
    ),
    "worktree add": Verb(
        "Make a work tree with its branch, its agent and the agent's claims: all of it, or nothing.",
        "git coord worktree add login --path src/login",
        "worktrees.cli:add",
        "NAME",
        (
            Option(
                "agent", "text", "Who will work there; default: you, or for a person one called NAME.", label="AGENT"
            ),
            Option("path", "texts", "Claim this path for the agent; may be given again.", label="PATH"),
            Option("branch", "text", "The new branch; default: NAME.", label="BRANCH"),
            Option("from", "text", "Where it starts; default: trunk.", label="COMMIT"),
            JSON,
        ),
        life="work",
    ),
    "worktree list": Verb(
        "List every work tree: whose, for which task, how far, with which claims.",
        "git coord worktree list",
        "worktrees.cli:list_",
        "",
        (JSON,),
        "read",
    ),
    "worktree done": Verb(
        "Remove a work tree whose work is merged, with its branch and claims. Nothing is lost.",
        "git coord worktree done login",
        "worktrees.cli:done",
        "NAME",
        (Option("discard-ignored", "flag", "Delete ignored files that exist nowhere else."), JSON),
        life="work",
        completes="worktrees",
    ),
    "journal add": Verb(
        "Write something down, for all to read: -m, a file, or what comes on stdin.",
        "git coord journal add -m 'the old parser stays until Friday' --path src/parse.py",
        "journal.cli:add",
        "[FILE]",
        (
            Option("message", "texts", "The text; again: one more paragraph.", "m"),
            _ABOUT,
            Option("task", "text", "The task it is about.", label="TASK"),
            QUIET,
            JSON,
        ),
    ),
    "journal show": Verb(
        "Show what was written and what happened, one story, oldest first.",
        "git coord journal show --since 2h",
        "journal.cli:show",
        "",
        (
            _BY,
            Option("since", "text", "From an event's number, a duration ago (2h) or a date (UTC) on.", label="WHEN"),
            _TOUCHES,
            Option("grep", "text", "Only what has these words, in any case."),
            Option("prose", "flag", "Only what was written."),
            Option("number", "number", "At most so many, the last ones; default: 50, 0: all.", "n"),
            JSON,
        ),
        "read",
    ),
    "number": Verb(
        "Reserve the next number of a sequence, never given twice.",
        "git coord number migrations",
        "effects.cli:number",
        "SEQUENCE",
        (
            Option("count", "number", "So many, one after the other; default: 1."),
            Option("peek", "flag", "Only tell what the next one would be."),
            JSON,
        ),
        group="everyday",
    ),
    "once": Verb(
        "Run a command at most once over all agents.",
        "git coord once release-1.2 -- ./announce.sh",
        "effects.cli_once:once",
        "[KEY] [-- COMMAND...]",
        (
            Option("wait", "duration", "Wait up to this long for the outcome of another's run."),
            Option("forget", "flag", "A person lets it be tried again."),
            Option("reason", "text", "With --forget: why, for the record."),
            Option("list", "flag", "What was run so, and how it ended."),
            JSON,
        ),
        life="work",
        group="everyday",
    ),
    "stop": Verb(
        "End your session and release what it holds.",
        "git coord stop",
        "sessions.cli:stop",
        "",
        (
            Option(
                "keep", "flag", "End all the same: claims with uncommitted work expire by themselves, tasks go back."
            ),
            JSON,
        ),
        group="everyday",
    ),
}

VERBS = {**_START, **_EVERYDAY}
