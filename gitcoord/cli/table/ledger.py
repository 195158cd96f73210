"""The rows of `git coord` about machines and servers, looking into the ledger, and plumbing."""

from __future__ import annotations

from gitcoord.terminal.parser import JSON, Option, Verb

_BY = Option("agent", "text", "Only what is by or about this agent.", label="AGENT")
_TOUCHES = Option("path", "text", "Only what touches this path.", label="PATH")
_DRY_RUN = Option("dry-run", "flag", "Only show what would be done.", "n")

_REPOSITORY_KEY = "REPOSITORY AGENT KEY-FILE"
_MACHINES = {
    "deploy": Verb(
        "Deploy one at a time, from no stale copy, on record.",
        "git coord deploy production -- ./deploy.sh",
        "deploy.cli_run:deploy",
        "TARGET -- COMMAND...",
        (
            Option("commit", "text", "The commit that is deployed; default: HEAD.", label="COMMIT"),
            Option("no-verify-surface", "flag", "Do not run the project's verification afterwards."),
            JSON,
        ),
        life="work",
        group="machines and servers",
    ),
    "deploys": Verb(
        "Show the last deploy of each target; is it behind by now?",
        "git coord deploys",
        "deploy.cli:deploys",
        "",
        (JSON,),
        "read",
        group="machines and servers",
    ),
    "server install": Verb(
        "Put the gate in place, beside hooks that are there. Running it again changes nothing.",
        "git coord server install /srv/git/project.git",
        "server.cli:install",
        "REPOSITORY",
        (
            Option("account", "text", "Where the transport names the account.", label="VARIABLE"),
            _DRY_RUN,
            JSON,
        ),
        "none",
        quick=False,
    ),
    "server uninstall": Verb(
        "Take the gate away; what was there before is as it was. Accounts and keys stay.",
        "git coord server uninstall /srv/git/project.git",
        "server.cli:uninstall",
        "REPOSITORY",
        (_DRY_RUN, JSON),
        "none",
        quick=False,
    ),
    "server status": Verb(
        "Show what is in place and what does not hold. Exits 1 where a hook or git-claim is missing.",
        "git coord server status /srv/git/project.git",
        "server.cli:status",
        "REPOSITORY",
        (JSON,),
        "none",
        quick=False,
    ),
    "server key add": Verb(
        "Let a key sign for an agent, beside those that do.",
        "git coord server key add /srv/git/project.git alice alice.pub",
        "server.cli:key_add",
        _REPOSITORY_KEY,
        (JSON,),
        "none",
        quick=False,
    ),
    "server key rotate": Verb(
        "Let this key, and no other, sign for an agent.",
        "git coord server key rotate /srv/git/project.git alice alice.pub",
        "server.cli:key_rotate",
        _REPOSITORY_KEY,
        (JSON,),
        "none",
        quick=False,
    ),
    "server key revoke": Verb(
        "Take an agent's keys, or one of them, off the list: they sign nothing any more.",
        "git coord server key revoke /srv/git/project.git alice",
        "server.cli:key_revoke",
        "REPOSITORY AGENT [KEY-FILE]",
        (JSON,),
        "none",
        quick=False,
    ),
    "server key list": Verb(
        "Show whose keys the server knows.",
        "git coord server key list /srv/git/project.git",
        "server.cli:key_list",
        "REPOSITORY",
        (JSON,),
        "none",
        quick=False,
    ),
}

_LOOKING = {
    "agents": Verb(
        "Show every agent known here, and when it was last seen.",
        "git coord agents",
        "views.cli:agents",
        "",
        (JSON,),
        "read",
        group="looking into it",
    ),
    "resources": Verb(
        "Show resources: capacity, who may use and who holds them.",
        "git coord resources",
        "views.cli:resources",
        "",
        (JSON,),
        "read",
        group="looking into it",
    ),
    "log": Verb(
        "Show the ledger, newest first.",
        "git coord log --path src/app.py",
        "ledger.cli:log",
        "",
        (
            _TOUCHES,
            _BY,
            Option("kind", "text", "Only events of this kind.", label="KIND"),
            Option("number", "number", "At most so many; default: 50, 0: all.", "n"),
            Option("since", "number", "Only from this event on.", label="SEQ"),
            JSON,
        ),
        "read",
        group="looking into it",
    ),
    "why": Verb(
        "Tell the story of a path: claims, refusals, releases.",
        "git coord why src/app.py",
        "journal.cli_why:why",
        "PATH",
        (Option("number", "number", "The last so many things; default: 50, 0: all.", "n"), JSON),
        "read",
        group="looking into it",
    ),
    "watch": Verb(
        "Follow the ledger: every event once and in order.",
        "git coord watch --name mailer --kind kill --exec ./mail.sh",
        "ledger.cli_watch:watch",
        "",
        (
            Option("since", "number", "From this event on; default: from the next one.", label="SEQ"),
            Option("kind", "texts", "Only events of this kind; may be given again.", label="KIND"),
            Option("path", "texts", "Only events that touch this path; may be given again.", label="PATH"),
            Option("exec", "text", "Run this for each event, which it reads as JSON.", label="COMMAND"),
            Option("name", "text", "Remember how far this watcher came, and go on from there.", label="NAME"),
            Option("interval", "duration", "Ask a remote that decides so often; default: 10s."),
            Option("until", "number", "End after this event.", label="SEQ"),
            Option("count", "number", "End after so many events."),
            Option("json", "flag", "Print one JSON object a line for each event."),
        ),
        "read",
        life="stay",
        quick=False,  # dulwich
        group="looking into it",
    ),
    "fsck": Verb(
        "Replay the ledger and name every difference.",
        "git coord fsck",
        "ledger.cli:fsck",
        "",
        (Option("repair", "flag", "Repair what is found."), JSON),
        life="work",
        quick=False,  # pygit2
        group="looking into it",
    ),
    "version": Verb(
        "Show the version of gitcoord.",
        "git coord version",
        "cli.version:version",
        "",
        (JSON,),
        "none",
        group="looking into it",
    ),
}

_PLUMBING = {
    "sweep": Verb(
        "Expire claims without activity for too long. Never needed.",
        "git coord sweep",
        "sessions.cli_kill:sweep",
        "",
        (JSON,),
        group="plumbing",
    ),
    "guard": Verb(
        "Judge what an agent's tool is about to do. For hooks.",
        "git coord guard < event.json",
        "guard.cli:guard",
        opens="none",
        group="plumbing",
    ),
    "mcp": Verb(
        "Serve gitcoord to an agent tool by MCP.",
        "git coord mcp",
        "mcp:start",
        opens="none",
        quick=False,  # mcp
        group="plumbing",
    ),
    "complete": Verb(
        "Print what a command line may go on with: what shells run.",
        "git coord complete claim release ''",
        "cli.complete:complete",
        "-- COMMAND...",
        (JSON,),
        "none",
        group="plumbing",
    ),
}

VERBS = {**_MACHINES, **_LOOKING, **_PLUMBING}
