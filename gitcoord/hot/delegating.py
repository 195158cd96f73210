"""Events of a tool whose subagents act in conversations of their own: put below the parent, as far as that can be told.

Only for Cursor. Where the notes are is told by the root that the tool was opened in, which is the same for all events of a
conversation: with the directory of a single command, a conversation that is known in one repository would be new in another.
"""

from gitcoord.app.delegations import hear
from gitcoord.core import delegations
from gitcoord.core.delegations import Delegation, acted, alone, began, called, delegated, ended, line
from gitcoord.core.toolevents import AFTER, BEFORE, PROMPT, START, SUBAGENT_STOP
from gitcoord.hot.host import Host
from gitcoord.store.places import is_set_up, locate, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.core.delegations import Known
    from gitcoord.core.toolevents import ToolEvent

_TASK = "Task"  # the action by which a conversation hands something on


def placed(event: "ToolEvent") -> "ToolEvent":
    """The event as one of whoever acts: of a subagent, below the conversation at the top."""
    scratch = _scratch(event.root)
    if not scratch or not event.conversation:
        return event
    known = hear(scratch, event.tool, delegations, lambda known: _heard(known, event))
    top, ids = line(known, event.conversation)
    if event.subagent:
        ids = (*ids, called(known, event.conversation, event.subagent))
    return event._replace(conversation=top, above=ids[:-1], subagent=ids[-1] if ids else "")


def refused(event: "ToolEvent") -> None:
    """The action was denied: what it would have handed on, nobody will take. `event` is as the tool sent it."""
    scratch = _scratch(event.root) if event.phase == BEFORE and event.action == _TASK else ""
    if scratch:
        hear(scratch, event.tool, delegations, lambda known: ended(known, event.id))


def _heard(known: "Known", event: "ToolEvent") -> "Known":
    if event.phase in (PROMPT, START):
        return began(known, event.conversation)
    if event.phase == SUBAGENT_STOP:
        return alone(ended(known, event.subagent), event.conversation)
    if event.phase not in (BEFORE, AFTER):
        return alone(known, event.conversation)
    if not event.id:
        return known  # it comes along with an action that is told by itself, or is a completion in the editor
    if event.phase == AFTER:
        return alone(ended(known, event.id) if event.action == _TASK else known, event.conversation)
    host = Host()
    process = _process(host) if known.open or event.action == _TASK else ""
    known = acted(known, event.conversation, process, host.wall())
    if event.action != _TASK:
        return known
    # Before it is judged: should that fail and the action pass all the same, its subagent must not be taken for another's.
    resume = event.input.get("resume")
    task = Delegation(event.id, event.conversation, process, host.wall())
    return delegated(known, task, resume if isinstance(resume, str) else "")


def _scratch(root: str) -> str:
    """Where this repository has its notes; '' where gitcoord is not set up."""
    try:
        place = locate(resolve(root, last=True)) if root.startswith("/") else None
    except (OSError, ValueError):
        return ""
    return f"{place.common}/gitcoord" if place and place.common and place.top and is_set_up(place.common) else ""


def _process(host: Host) -> str:
    """The tool's process, as nothing else is ever called; '' where it cannot be told."""
    from gitcoord.hot.identity import tool_process
    from gitcoord.store.process import start_time

    pid = tool_process()
    begun = start_time(pid) if pid else ""
    return f"{pid} {begun} {host.boot}" if begun else ""
