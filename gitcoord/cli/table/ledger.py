"""The rows of `git coord` about machines and servers, looking into the ledger, and plumbing."""

from __future__ import annotations

from gitcoord.terminal.parser import Option, row

_BY = Option("agent", "text", "Only what is by or about this agent.", label="AGENT")
_TOUCHES = Option("path", "text", "Only what touches this path.", label="PATH")
_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")

_REPOSITORY_KEY = "REPOSITORY AGENT KEY-FILE"
_MACHINES = {
    "deploy": row(
        "Deploy one at a time, from no stale copy, on record.",
        "deploy.cli_run:deploy",
        "TARGET -- COMMAND...",
        Option("commit", "text", "The commit that is deployed; default: HEAD.", label="COMMIT"),
        Option("no-verify-surface", "flag", "Do not run the project's verification afterwards."),
        example="deploy production -- ./deploy.sh",
        life="work",
    ),
    "deploys": row("Show the last deploy of each target; is it behind by now?", "deploy.cli:deploys", opens="read"),
    "server install": row(
        "Put the gate in place, beside hooks that are there. Running it again changes nothing.",
        "server.cli:install",
        "REPOSITORY",
        Option("account", "text", "Where the transport names the account.", label="VARIABLE"),
        _DRY_RUN,
        example="server install /srv/git/project.git",
        opens="none",
        needs="the installation",
    ),
    "server uninstall": row(
        "Take the gate away; what was there before is as it was. Accounts and keys stay.",
        "server.cli:uninstall",
        "REPOSITORY",
        _DRY_RUN,
        example="server uninstall /srv/git/project.git",
        opens="none",
    ),
    "server status": row(
        "Show what is in place and what does not hold. Exits 1 where a hook or git-claim is missing.",
        "server.cli:status",
        "REPOSITORY",
        example="server status /srv/git/project.git",
        opens="none",
        needs="the installation",
    ),
    "server key add": row(
        "Let a key sign for an agent, beside those that do.",
        "server.cli:key_add",
        _REPOSITORY_KEY,
        example="server key add /srv/git/project.git alice alice.pub",
        opens="none",
    ),
    "server key rotate": row(
        "Let this key, and no other, sign for an agent.",
        "server.cli:key_rotate",
        _REPOSITORY_KEY,
        example="server key rotate /srv/git/project.git alice alice.pub",
        opens="none",
    ),
    "server key revoke": row(
        "Take an agent's keys, or one of them, off the list: they sign nothing any more.",
        "server.cli:key_revoke",
        "REPOSITORY AGENT [KEY-FILE]",
        example="server key revoke /srv/git/project.git alice",
        opens="none",
    ),
    "server key list": row(
        "Show whose keys the server knows.",
        "server.cli:key_list",
        "REPOSITORY",
        example="server key list /srv/git/project.git",
        opens="none",
    ),
}

_LOOKING = {
    "agents": row("Show every agent known here, and when it was last seen.", "views.cli:agents", opens="read"),
    "resources": row("Show resources: capacity, who may use and who holds them.", "views.cli:resources", opens="read"),
    "log": row(
        "Show the ledger, newest first.",
        "ledger.cli:log",
        "[PATH]",
        _TOUCHES,
        _BY,
        Option("kind", "text", "Only events of this kind.", label="KIND"),
        Option("number", "number", "At most so many; default: 50, 0: all.", "n"),
        Option("since", "number", "Only from this event on.", label="SEQ"),
        example="log src/app.py",
        opens="read",
    ),
    "why": row(
        "Tell the story of a path, a task (t12) or a handoff (h31).",
        "journal.cli_why:why",
        "PATH",
        Option("number", "number", "The last so many things; default: 50, 0: all.", "n"),
        example="why src/app.py",
        opens="read",
    ),
    "contention": row(
        "Show where agents wait for each other, and what helps.",
        "journal.cli_contention:contention",
        "",
        Option("since", "text", "From this event, duration or date on; default: 7d.", label="WHEN"),
        Option("number", "number", "At most so many paths and agents; default: 20, 0: all.", "n"),
        example="contention --since 2d",
        opens="read",
    ),
    "watch": row(
        "Follow the ledger: every event once and in order.",
        "ledger.cli_watch:watch",
        "",
        Option("since", "number", "From this event on; default: from the next one.", label="SEQ"),
        Option("kind", "texts", "Only events of this kind; may be given again.", label="KIND"),
        Option("path", "texts", "Only events that touch this path; may be given again.", label="PATH"),
        Option("exec", "text", "Run this for each event, which it reads as JSON.", label="COMMAND"),
        Option("name", "text", "Remember how far this watcher came, and go on from there.", label="NAME"),
        Option("interval", "duration", "Ask a remote that decides so often; default: 10s."),
        Option("until", "number", "End after this event.", label="SEQ"),
        Option("count", "number", "End after so many events."),
        Option("json", "flag", "Print one JSON object a line for each event."),
        example="watch --name mailer --kind kill --exec ./mail.sh",
        opens="read",
        life="long_lived",
        needs="dulwich",
        json=False,  # its own says more
    ),
    "fsck": row(
        "Replay the ledger and name every difference.",
        "ledger.cli:fsck",
        "",
        Option("repair", "flag", "Repair what is found."),
        life="work",
        needs="pygit2",
    ),
    "doctor": row(
        "Tell whether gitcoord works here, and what helps.",
        "audit.cli:doctor",
        "",
        Option("fix", "flag", "Put right what setup can; it shows each step first."),
        example="doctor --fix",
        needs="the installation",
    ),
    "audit": row(
        "Tell whether the project is safe for many agents.",
        "audit.cli:audit",
        "",
        Option(
            "fail-on",
            "text",
            "Exit 1 from this severity on: low, medium, high, critical; default: high.",
            label="SEVERITY",
        ),
        Option("markdown", "flag", "As a table for a pull request."),
        example="audit --fail-on critical",
        needs="the installation",
    ),
    "drill": row(
        "Let many agents loose on a scratch copy, and give a verdict.",
        "cli.drill.cli:drill",
        "",
        Option("agents", "number", "So many at once, 10 to 100; default: 12.", label="N"),
        Option("minutes", "number", "At most so long; default: 2.", label="N"),
        Option("quick", "flag", "Each way in once, and a round for each agent."),
        Option("seed", "number", "Repeat a drill: the same files, in the same order.", label="N"),
        Option("markdown", "flag", "As a report for a pull request."),
        example="drill --minutes 5 --markdown",
        needs="the installation",
    ),
    "version": row("Show the version of gitcoord.", "cli.version:version", opens="none"),
}

_PLUMBING = {
    "sweep": row("Expire claims without activity for too long. Never needed.", "sessions.cli_kill:sweep"),
    "guard": row(
        "Judge what an agent's tool is about to do. For hooks.",
        "guard.hook:guard",
        example="guard < event.json",
        opens="none",
        json=False,
    ),
    "mcp": row("Serve gitcoord to an agent tool by MCP.", "mcp:start", opens="none", needs="mcp", json=False),
    "complete": row(
        "Print what a command line may go on with: what shells run.",
        "cli.complete:complete",
        "-- COMMAND...",
        example="complete claim release ''",
        opens="none",
    ),
}

VERBS = {**_MACHINES, **_LOOKING, **_PLUMBING}
