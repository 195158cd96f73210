"""Running the validators that a policy turns on: facts gathered, the chain run, the project's own commands asked.

Each function gives what stands against a deed, in the chain's order: first the shipped ones, then the project's own. An empty
list, or results whose `stops` is false, let it pass. A validator that could not judge says so; nothing is raised for it.
"""

from gitcoord.core.validators import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.app.policy import Source
    from gitcoord.core.sessions import Actor
    from gitcoord.core.toolevents import ToolEvent


def before_tool(ctx: "Context", source: "Source", actor: "Actor", event: "ToolEvent") -> "list[Result]":
    """Before an agent's tool acts. `event.writes` and `event.reads` name every file, also those that a shell command names."""
    return []


def after_tool(ctx: "Context", source: "Source", actor: "Actor", event: "ToolEvent") -> "list[Result]":
    """After it: what it spent and whether it failed is counted. Nothing can be stopped any more."""
    return []


def at_stop(ctx: "Context", source: "Source", actor: "Actor") -> "list[Result]":
    """Before an agent ends its work."""
    return []
