"""The rows of `git coord` for setting up and for everyday work."""

from __future__ import annotations

from gitcoord.terminal.parser import QUIET, WHY, Option, row

_BY = Option("agent", "text", "Only what is by or about this agent.", label="AGENT")
_TOUCHES = Option("path", "text", "Only what touches this path.", label="PATH")
_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")
_USER = Option("user", "flag", "In your own settings of the agent tools, not in the project's.")
_YES = Option("yes", "flag", "Do not ask.", "y")
_ABOUT = Option("path", "texts", "A path that it is about; may be given again.", label="PATH")

_START = {
    "setup": row(
        "Set gitcoord up in one step: ledger, policy, hooks, tools.",
        "cli.setup:setup",
        "",
        _YES,
        _DRY_RUN,
        Option(
            "remote", "text", "Let this remote decide, for all its clones: join its ledger, or make it.", label="REMOTE"
        ),
        Option("local", "flag", "Let this clone alone decide."),
        Option("suggest", "flag", "Mark the paths that 'policy suggest' names."),
        Option("edit-hooks", "flag", "Add the gates to the files of husky, lefthook or pre-commit."),
        Option("tool", "texts", "Set up this agent tool, found or not; may be given again.", label="TOOL"),
        Option("no-tools", "flag", "Leave the agent tools alone."),
        _USER,
        example="setup --dry-run",
        life="work",
        needs="the installation",
    ),
    "init": row(
        "Make the ledger, here or at a remote; a repeat is harmless.",
        "ledger.cli_init:init",
        "",
        Option("policy", "flag", "Also write a commented starter policy."),
        Option("sync", "text", "Trunk: the branch on which work lands; default: the current one.", label="BRANCH"),
        Option("fold-case", "flag", "Paths that differ in case only conflict; default: core.ignoreCase."),
        Option("no-fold-case", "flag", "Paths that differ in case only do not conflict."),
        Option("adopt", "flag", "Make the ledger of a copied repository this one's own."),
        Option("remote", "text", "Let this remote decide: for clones on many machines.", label="REMOTE"),
        Option("same", "flag", "With --remote: its address is another one of the ledger's own server."),
        Option("read-only", "flag", "With --remote: only look at its ledger, as CI does."),
        example="init --policy",
        life="work",
    ),
    "start": row(
        "Open your session, and be told all there is to know.",
        "sessions.cli:start",
        "",
        Option("brief", "flag", "For a small context: at most 25 lines, without what there is not.", "b"),
        Option("join", "flag", "Join a session that another process of this name has open."),
    ),
    "run": row(
        "Launch an agent; its claims are released when it ends.",
        "sessions.cli_run:run",
        "-- COMMAND...",
        Option("as", "text", "The agent's name; default: made up from the command.", label="NAME"),
        example="run --as alice -- claude",
        life="long_lived",
        needs="dulwich",
        json=False,
    ),
    "demo": row(
        "Show what gitcoord does, in a throw-away repository.",
        "cli.demo:demo",
        opens="none",
        needs="the installation",
        json=False,
    ),
    "teardown": row(
        "Take gitcoord out of this repository; the ledger is kept.",
        "cli.cli_teardown:teardown",
        "",
        _YES,
        _DRY_RUN,
        Option("force", "flag", "For a person: although somebody holds claims."),
        Option("user", "flag", "Also out of your own settings of the agent tools."),
        example="teardown --dry-run",
        life="work",
        needs="the installation",
    ),
}

_EVERYDAY = {
    "status": row("Show what needs you, and all that is going on.", "views.cli:status", opens="read"),
    "top": row(
        "Show what needs you and what is going on, live.",
        "views.cli_top:top",
        "",
        Option("plain", "flag", "Print each change as a line, for screen readers."),
        Option("json", "flag", "Print the overview as one JSON object a line, at each change."),
        example="top",
        opens="read",
        life="work",
        json=False,  # its own says more
    ),
    "page": row(
        "Show it live in a browser; with --act, act from there.",
        "page.cli:page",
        "",
        Option("act", "flag", "For a person: approve, deny, kill, halt and more from the page."),
        Option("port", "number", "Listen at this port; default: 8417 or the next free one, 0: any.", label="PORT"),
        Option("listen", "text", "Listen at this address; default: 127.0.0.1, this machine alone.", label="ADDRESS"),
        Option("no-open", "flag", "Do not open a browser."),
        Option("json", "flag", "Print address and link as one JSON object a line."),
        example="page --act",
        opens="read",
        life="work",
        needs="starlette and uvicorn",
        json=False,  # its own says more
    ),
    "radar": row(
        "Show work under way that will conflict.",
        "radar.cli:radar",
        "",
        Option("all", "flag", "Also the pairs that changed the same files and merge.", "a"),
        example="radar",
        opens="read",
    ),
    "commit": row(
        "Commit exactly these files, whatever anybody has staged.",
        "worktrees.cli:commit",
        "-- FILE...",
        Option("message", "texts", "The message; again: one more paragraph.", "m"),
        Option("file", "text", "Take the message from a file, '-': stdin.", "F", label="FILE"),
        Option("trailer", "texts", "Add a trailer to the message.", label="KEY=VALUE"),
        Option("force", "flag", "Commit ignored files too.", "f"),
        Option("release", "flag", "Then release your claims on these files."),
        Option("land", "flag", "Then land the branch, which releases them too."),
        QUIET,
        example="commit -m 'login: new form' -- src/login.py",
        life="work",
    ),
    "sync": row(
        "Tell whether the current branch has all that landed.",
        "deploy.cli:sync",
        "",
        Option("pull", "flag", "Bring the current branch up to date, where that is clean."),
        Option("fetch", "flag", "Ask the remote what is new there; the default."),
        Option("no-fetch", "flag", "Go by what was fetched before."),
        example="sync --pull",
        life="work",
    ),
    "land": row(
        "Bring a branch onto trunk, in its turn, checked and judged.",
        "landing.cli:land",
        "[BRANCH]",
        Option("check", "texts", "Also run this command on what would land; may be given again.", label="COMMAND"),
        Option("merge", "flag", "Fast-forward, or make a merge commit; the default."),
        Option("rebase", "flag", "Make the branch's commits anew on top of trunk."),
        Option("squash", "flag", "Make one commit of the branch."),
        Option("task", "text", "Complete this task of yours when it has landed.", label="TASK"),
        Option(
            "wait", "duration", "Wait for a turn up to this long; default: 30m, 0: not at all. Ctrl-C leaves the queue."
        ),
        _DRY_RUN,
        Option("list", "flag", "Show who lands, and who waits for a turn."),
        Option("continue", "flag", "Go on after a conflict that is resolved."),
        Option("abort", "flag", "Give up a landing that conflicts, and its turn."),
        Option("done", "flag", "Afterwards remove the branch's work tree."),
        example="land --task t12 --wait 10m",
        life="work",
    ),
    "worktree add": row(
        "Make a work tree with its branch, its agent and the agent's claims: all of it, or nothing.",
        "worktrees.cli:add",
        "NAME",
        Option("agent", "text", "Who will work there; default: you, or for a person one called NAME.", label="AGENT"),
        Option("path", "texts", "Claim this path for the agent; may be given again.", label="PATH"),
        Option("branch", "text", "The new branch; default: NAME.", label="BRANCH"),
        Option("from", "text", "Where it starts; default: trunk.", label="COMMIT"),
        example="worktree add login --path src/login",
        life="work",
    ),
    "worktree list": row(
        "List every work tree: whose, for which task, how far, with which claims.", "worktrees.cli:list_", opens="read"
    ),
    "worktree done": row(
        "Remove a work tree whose work is merged, with its branch and claims. Nothing is lost.",
        "worktrees.cli_done:done",
        "NAME",
        Option("discard-ignored", "flag", "Delete ignored files that exist nowhere else."),
        example="worktree done login",
        life="work",
        completes="worktrees",
    ),
    "note": row(
        "Leave a note for agents on a path; without -m, show notes.",
        "journal.cli_note:note",
        "[PATH]",
        Option("message", "texts", "The text; again: one more paragraph.", "m"),
        Option("for", "duration", "Show it for so long; default: 14d."),
        Option("list", "flag", "Show the notes, and who has seen them.", "l"),
        Option("remove", "number", "Take the note with this number away.", label="NOTE"),
        QUIET,
        example="note src/parse.py -m 'the old parser stays until Friday'",
    ),
    "journal add": row(
        "Write something down, for all to read: a text in quotes, -m, a file, or what comes on stdin.",
        "journal.cli:add",
        "[FILE]",
        Option("message", "texts", "The text; again: one more paragraph.", "m"),
        _ABOUT,
        Option("task", "text", "The task it is about.", label="TASK"),
        QUIET,
        example="journal add -m 'the old parser stays until Friday' --path src/parse.py",
    ),
    "journal show": row(
        "Show what was written and what happened, one story, oldest first.",
        "journal.cli:show",
        "",
        _BY,
        Option("since", "text", "From an event's number, a duration ago (2h) or a date (UTC) on.", label="WHEN"),
        _TOUCHES,
        Option("grep", "text", "Only what has these words, in any case."),
        Option("prose", "flag", "Only what was written."),
        Option("number", "number", "At most so many, the last ones; default: 50, 0: all.", "n"),
        example="journal show --since 2h",
        opens="read",
    ),
    "number": row(
        "Reserve the next number of a sequence, never given twice.",
        "effects.cli:number",
        "SEQUENCE",
        Option("count", "number", "So many, one after the other; default: 1."),
        Option("peek", "flag", "Only tell what the next one would be."),
        Option(
            "file", "text", "Claim this new file in the same step; {n} in its name stands for the number.", label="FILE"
        ),
        example="number migrations --file 'db/migrations/{n}_add_user.sql'",
    ),
    "once": row(
        "Run a command at most once over all agents.",
        "effects.cli_once:once",
        "[KEY] [-- COMMAND...]",
        Option("wait", "duration", "Wait up to this long for the outcome of another's run."),
        Option("forget", "flag", "A person lets it be tried again."),
        WHY._replace(help="With --forget: why, for the record."),
        Option("list", "flag", "What was run so, and how it ended."),
        example="once release-1.2 -- ./announce.sh",
        life="work",
    ),
    "stop": row(
        "End your session and release what it holds.",
        "sessions.cli:stop",
        "",
        Option("keep", "flag", "End all the same: claims with uncommitted work expire by themselves, tasks go back."),
    ),
}

VERBS = {**_START, **_EVERYDAY}
