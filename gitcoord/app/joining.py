"""What the project's own settings, in the work tree, say to a clone that has not joined its ledger yet."""

from gitcoord.names import CONFIG
from gitcoord.store.files import exists
from gitcoord.store.process import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context


def policy_setting(ctx: "Context", name: str) -> str:
    """`[gitcoord] <name>` of the policy in the work tree; '' where it does not say."""
    path = f"{ctx.repo.worktree}/{CONFIG}"
    if not ctx.repo.worktree or not exists(path):
        return ""
    code, out, _ = run(["git", "config", "--file", path, "--get", f"gitcoord.{name}"], ctx.repo.env)
    return out.decode("utf-8", "surrogateescape").strip() if not code else ""
