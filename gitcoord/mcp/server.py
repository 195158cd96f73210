"""`git coord mcp`: claims, handoffs, tasks and the journal as tools, over stdin and stdout.

Each tool is one verb of the command line; who acts is resolved as everywhere else. Tools are coroutines without an await: they
run one after the other in the main thread, where git's children and signals belong.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from signal import SIG_BLOCK, SIGIO, pthread_sigmask
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from gitcoord import __version__
from gitcoord.base.codec import dumps
from gitcoord.cli.caller import Caller, Row
from gitcoord.cli.table.claim import VERBS as CLAIM
from gitcoord.cli.table.coord import VERBS as COORD
from gitcoord.cli.table.handoff import VERBS as HANDOFF
from gitcoord.terminal.parser import Values

INSTRUCTIONS = """\
Several agents and people change this repository at the same time. Call `start` first. Claim a path before you change it;
`land` brings your branch onto trunk and releases it, `release` what has landed otherwise. Do not change a path that another agent holds: do something else (task_next), or claim it with
`queue`: a later result has "news" when it is yours, and when others wait for what you hold. When
you stop in the middle, hand over (handoff_new). Paths are relative to the directory in which the server was started;
@name is a resource, such as a deploy target. A result with "ok": false says why in "message", and what helps in "hints".
"""
_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_AGAIN = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)  # repeating it changes nothing
_ONCE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

Paths = Annotated[list[str], Field(description="Files, directories, patterns or @resources.", min_length=1)]
Task = Annotated[str, Field(description="The task's id.")]
Handoff = Annotated[str, Field(description="The handoff's id.")]
Duration = Annotated[str, Field(description="Like 90s, 30m or 2h; default: the usual one.")]
Text = Callable[..., Coroutine[Any, Any, CallToolResult]]


def result_of(row: Row, wrong: bool) -> CallToolResult:
    """The answer twice: as text for models, as data for programs."""
    return CallToolResult(content=[TextContent(type="text", text=dumps(row))], structured_content=row, is_error=wrong)


def build(caller: Caller) -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer(
        "gitcoord", title="gitcoord", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for function, hints in _tools(caller):
        server.add_tool(function, annotations=hints, structured_output=False)
        _refuse_unknown_arguments(server, function.__name__)
    return server


def _refuse_unknown_arguments(server: MCPServer[Any], name: str) -> None:
    """Refuse unknown arguments, which the library drops: `message` instead of `reason`, for example, would be lost."""
    tool: Any = server._tool_manager.get_tool(name)
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)


def _tools(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    return [*_claims(caller), *_landing(caller), *_handoffs(caller), *_tasks(caller), *_journal(caller)]


def _claims(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    def ask(name: str, words: list[str], **values: Any) -> CallToolResult:
        return result_of(*caller.call(CLAIM[name], _values(values), words))

    async def start(brief: bool = True) -> CallToolResult:
        """Call this first: open or continue your session; gives rules, your claims and losses, handoffs for you, next tasks."""
        return result_of(*caller.call(COORD["start"], _values({"brief": brief}), []))

    async def claim(
        paths: Paths,
        reason: Annotated[str, Field(description="The reason: shown to agents that are refused.")] = "",
        mode: Literal["write", "read", "intent"] = "write",
        ttl: Duration = "",
        task: Annotated[str, Field(description="The task this belongs to.")] = "",
        nonce: Annotated[str, Field(description="A key of yours: a repeat under it has no second effect.")] = "",
        queue: Annotated[
            bool,
            Field(
                description='Where another holds it, take a place in the queue and go on; later results have "news".'
            ),
        ] = False,
        priority: Annotated[
            Literal["", "critical", "high", "normal", "low"], Field(description="With queue: the class of the request.")
        ] = "",
    ) -> CallToolResult:
        """Claim paths before changing them: all or none. A path that another holds is refused, with its holder and since when;
        with `queue` the answer has "waiting", your ticket and position. Names after "--" may be any; the others are checked for mistakes."""
        after = paths[paths.index("--") + 1 :] if "--" in paths else []
        words = [*paths[: len(paths) - len(after) - bool(after)], *after]
        said = {"message": reason, "mode": mode, "ttl": ttl, "task": task, "nonce": nonce, "--": after}
        return ask("take", words, **said, queue=queue, priority=priority)

    async def release(
        paths: Annotated[
            list[str], Field(description="The paths to release; nothing named: everything you hold.")
        ] = [],  # noqa: B006
        commit: Annotated[str, Field(description="The commit that carries the work; default: HEAD.")] = "",
    ) -> CallToolResult:
        """Release claimed paths whose work has landed; `land` does that by itself."""
        return ask("release", paths, all=not paths, commit=commit)

    async def leave_queue(
        paths: Annotated[list[str], Field(description="The paths you waited for; nothing named: all.")] = [],  # noqa: B006
    ) -> CallToolResult:
        """Give up your place in the queue of claims."""
        return ask("take", paths, leave=True)

    async def list_(mine: bool = False) -> CallToolResult:
        """List the live claims and their holders, and who waits for what ("waits")."""
        return ask("list", [], mine=mine)

    async def check(paths: Paths) -> CallToolResult:
        """Check whether you may write these paths now: "allowed"; each path has a verdict and, where it is held, its holder."""
        return ask("check", paths)

    list_.__name__ = "list"
    return [
        (start, _AGAIN), (claim, _AGAIN), (release, _AGAIN), (leave_queue, _AGAIN), (list_, _LOOKS), (check, _LOOKS),
    ]  # fmt: skip


def _landing(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    async def commit(
        files: Annotated[list[str], Field(description="The files to commit, and no others.", min_length=1)],
        message: Annotated[str, Field(description="The commit's message.", min_length=1)],
        release: Annotated[bool, Field(description="Then release your claims on these files.")] = False,
    ) -> CallToolResult:
        """Commit exactly these files, whatever anybody has staged. Call `land` when the branch is ready."""
        values = _values({"message": [message], "release": release})
        return result_of(*caller.call(COORD["commit"], values, files))

    async def number(
        sequence: Annotated[str, Field(description="The sequence's name, such as migrations.", min_length=1)],
        file: Annotated[
            str, Field(description="Claim this new file in the same step; {n} in its name stands for the number.")
        ] = "",
        count: Annotated[int, Field(description="So many, one after the other.", ge=1)] = 1,
        peek: Annotated[bool, Field(description="Only tell what the next one would be.")] = False,
    ) -> CallToolResult:
        """Reserve the next number of a sequence, which nobody else gets. Each call reserves one more."""
        values = _values({"file": file, "count": str(count) if count > 1 else "", "peek": peek})
        return result_of(*caller.call(COORD["number"], values, [sequence]))

    async def land(
        branch: Annotated[str, Field(description="The branch to land; default: the one that is checked out.")] = "",
        check: Annotated[str, Field(description="Also run this command on what would land.")] = "",
        how: Annotated[
            Literal["", "merge", "rebase", "squash"], Field(description="Default: as the policy says.")
        ] = "",
        task: Annotated[str, Field(description="Complete this task of yours when it has landed.")] = "",
        wait: Annotated[str, Field(description="How long to wait for a turn, like 90s or 10m; 0: not at all.")] = "1m",
        mode: Annotated[
            Literal["land", "continue", "abort", "list", "dry-run"],
            Field(description="After a conflict: continue or abort. list: who lands and who waits."),
        ] = "land",
        done: Annotated[bool, Field(description="Afterwards remove the branch's work tree.")] = False,
    ) -> CallToolResult:
        """Bring your branch onto trunk, in a fair queue, checked, and release the claims whose work has landed. A conflict stands in your
        work tree: resolve it, git add, then call this with mode "continue"."""
        said = {mode: mode != "land", "wait": wait if mode == "land" else "", "task": task, "done": done}
        values = _values({**said, "check": [check] if check else [], **({how: True} if how else {})})
        return result_of(*caller.call(COORD["land"], values, [branch] if branch else []))

    return [(commit, _ONCE), (land, _AGAIN), (number, _ONCE)]


def _handoffs(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    def ask(name: str, words: list[str], **values: Any) -> CallToolResult:
        return result_of(*caller.call(HANDOFF[name], _values(values), words))

    async def handoff_new(
        state: Annotated[str, Field(description="What works now, what does not, and how you know.", min_length=1)],
        changed: Annotated[str, Field(description="What you changed, and why.", min_length=1)],
        remaining: Annotated[str, Field(description="What is left to do.", min_length=1)],
        next: Annotated[str, Field(description="The one concrete thing to do first.", min_length=1)],
        to: Annotated[str, Field(description="An agent, or @role; default: anyone.")] = "",
        task: Annotated[str, Field(description="The task that goes along.")] = "",
        paths: Annotated[list[str], Field(description="Only claims on or below these go along; default: all.")] = [],  # noqa: B006
        blockers: Annotated[str, Field(description="The problems that block the work.")] = "none",
        assumptions: Annotated[str, Field(description="Assumptions that you did not check.")] = "none",
    ) -> CallToolResult:
        """Offer your work to another, with the claims you hold. Nothing changes hands until it is accepted."""
        sections = {"state": state, "changed": changed, "remaining": remaining, "next": next}
        more = {"blockers": blockers or "none", "assumptions": assumptions or "none"}
        return ask("new", [], to=to, task=task, path=paths, **sections, **more)

    async def handoff_list(all: bool = False) -> CallToolResult:
        """The handoffs that wait; with `all` also those that were answered."""
        return ask("list", [], all=all)

    async def handoff_show(id: Handoff) -> CallToolResult:
        """One handoff: its document, its facts, who holds its paths now."""
        return ask("show", [id])

    async def handoff_accept(id: Handoff) -> CallToolResult:
        """Take a handoff over: its claims, task and branch are yours from now on."""
        return ask("accept", [id])

    return [(handoff_new, _ONCE), (handoff_list, _LOOKS), (handoff_show, _LOOKS), (handoff_accept, _AGAIN)]


def _tasks(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    def ask(name: str, words: list[str], **values: Any) -> CallToolResult:
        return result_of(*caller.call(COORD[name], _values(values), words))

    async def task_next(ttl: Duration = "") -> CallToolResult:
        """Take the next task that can be done now, with the paths it needs; "task" is null where there is none."""
        return ask("task next", [], ttl=ttl)

    async def task_take(id: Task, ttl: Duration = "") -> CallToolResult:
        """Take this task, with the paths that it needs: all or nothing."""
        return ask("task take", [id], ttl=ttl)

    async def task_complete(
        id: Task,
        summary: Annotated[str, Field(description="What was done.", min_length=1)],
        not_done: Annotated[list[str], Field(description="What was not done; an empty list where nothing is left.")],
    ) -> CallToolResult:
        """Hand in a task's result; its claims are released."""
        return ask("task complete", [id], message=summary, **{"not-done": not_done or ["none"]})

    async def task_fail(
        id: Task, reason: Annotated[str, Field(description="Why it failed.", min_length=1)]
    ) -> CallToolResult:
        """Report that a task failed."""
        return ask("task fail", [id], reason=reason)

    async def task_list(mine: bool = False, all: bool = False) -> CallToolResult:
        """The tasks that are not over, oldest first; with `all` also the others."""
        return ask("task list", [], mine=mine, all=all)

    async def task_show(id: Task) -> CallToolResult:
        """Everything about a task."""
        return ask("task show", [id])

    return [
        (task_next, _ONCE), (task_take, _AGAIN), (task_complete, _ONCE), (task_fail, _ONCE), (task_list, _LOOKS),
        (task_show, _LOOKS),
    ]  # fmt: skip


def _journal(caller: Caller) -> list[tuple[Text, ToolAnnotations]]:
    async def journal_add(
        text: Annotated[str, Field(description="What others should know.", min_length=1)],
        paths: Annotated[list[str], Field(description="The paths it is about.")] = [],  # noqa: B006
        task: Annotated[str, Field(description="The task it is about.")] = "",
    ) -> CallToolResult:
        """Add an entry to the journal, which all can read. Each call adds one."""
        values = _values({"message": [text], "path": paths, "task": task})
        return result_of(*caller.call(COORD["journal add"], values, []))

    async def note(
        path: Annotated[str, Field(description="The path it is about.", min_length=1)],
        text: Annotated[str, Field(description="What the next agent that works there should know.", min_length=1)],
    ) -> CallToolResult:
        """Leave a note on a path: each agent that works there is shown it once. Each call leaves one."""
        return result_of(*caller.call(COORD["note"], {"message": [text]}, [path]))

    async def journal_show(
        since: Annotated[str, Field(description="An event's number, a duration ago (2h) or a date (UTC).")] = "",
        path: Annotated[str, Field(description="Only what touches this path.")] = "",
        agent: Annotated[str, Field(description="Only what is by or about this agent.")] = "",
        prose: Annotated[bool, Field(description="Only what was written.")] = False,
        number: Annotated[int, Field(description="At most so many, the last ones.", ge=1, le=1000)] = 50,
    ) -> CallToolResult:
        """Show the journal: entries and events in one list, oldest first."""
        values = {"since": since, "path": path, "agent": agent, "prose": prose, "number": str(number)}
        return result_of(*caller.call(COORD["journal show"], _values(values), []))

    async def status() -> CallToolResult:
        """The overview: "needs_you", "needs_person" and "early_warnings" first, then claims with who waits for them, who lands, agents, open tasks,
        approvals, deploys, hot spots. Each row has its "source"."""
        return result_of(*caller.call(COORD["status"], {}, []))

    return [(journal_add, _ONCE), (note, _ONCE), (journal_show, _LOOKS), (status, _LOOKS)]


def _values(given: dict[str, Any]) -> Values:
    """The options of a verb, without those that were not given."""
    return {key: value for key, value in given.items() if value not in ("", False, [])}


def serve() -> None:
    """Serve until the client closes its end."""
    # A landing waits by SIGIO (`claims/cli_sleep.py`). Threads inherit the mask, so none of the library's is ended by it.
    pthread_sigmask(SIG_BLOCK, [SIGIO])
    caller = Caller()
    try:
        build(caller).run("stdio")
    finally:
        caller.close()
