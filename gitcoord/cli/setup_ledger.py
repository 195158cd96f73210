"""The ledger in `git coord setup`: which one this clone will use, in words, and whether it is shared."""

from __future__ import annotations

import sys
import time

from gitcoord.base.errors import GitcoordError, refused
from gitcoord.base.names import CONFIG, printable, quote, shell_word
from gitcoord.cli import teardown as app
from gitcoord.gates.approvals import require_overseer
from gitcoord.gates.hooks.cli import watched
from gitcoord.git.commands.remotes import remote_url
from gitcoord.ledger.named_ledger import fetched_policy, has_committed_root, is_beside_trunk
from gitcoord.ledger.remote.address import without_secrets
from gitcoord.ledger.remote.join import has_another_ledger, require_the_named
from gitcoord.ledger.remote.membership import Membership, find
from gitcoord.ledger.remote.user_refs import fetch_sync
from gitcoord.ledger.setup import require_room, sync_branch
from gitcoord.policy.starter import remove_starter
from gitcoord.terminal.call import Call, at_terminal
from gitcoord.terminal.parser import Values
from gitcoord.terminal.screen import put
from gitcoord.world.open import open_repository


def chosen_ledger(call: Call, values: Values, *, dry_run: bool) -> Membership:
    """The ledger that this clone will use. A person is asked whether a new one is shared."""
    wish, local = str(values.get("remote", "")), bool(values.get("local"))
    found = find(call.ctx, wish, local=local)
    found = found._replace(known=()) if local else found  # nothing is offered to those who have said it
    if wish and _gives_way(call, values, found):
        found = found._replace(other=True, found=True)
    if found.other:
        require_overseer(call.ctx, watched(call), "give this clone's ledger up", trusting=True)
        if _consents(values) and not call.ctx.remote:
            found = found._replace(ends=tuple((str(c["path"]), str(c["agent"])) for c in app.live_claims(call.ctx)))
        app.survey(call.ctx, None, force=False, ends=found.ends)
    if found.here or found.remotes:
        return found
    require_room(call.ctx)
    if found.known and not local and not dry_run and is_asked(values):
        name = "origin" if "origin" in found.known else found.known[0]
        if said_yes(f"share the ledger through {quote(name)}, so that all its clones use this one?"):
            return found._replace(remotes=(name,))
    return found


def _consents(values: Values) -> bool:
    """Return whether somebody is asked before anything is changed, or has said --yes."""
    return bool(values.get("yes")) or at_terminal()


def _gives_way(call: Call, values: Values, found: Membership) -> bool:
    """Return whether this clone's own ledger can give way to that of the remote that was asked for: no committed policy names
    one, and the policy that names this clone's is the unchanged starter, which goes with it."""
    ctx = call.ctx
    own = found.here and not found.other and not ctx.remote and found.remote in found.known
    if not own or not _consents(values) or has_committed_root(ctx):
        return False
    root = ctx.settings.get("gitcoord.root")
    _, left = remove_starter(ctx.repo, root, dry_run=True)
    return CONFIG not in left and has_another_ledger(ctx, found.remote)


def archive(call: Call, found: Membership) -> None:
    """Archive this clone's own ledger, which is not the project's, and open the repository anew. The starter policy that names
    it goes too, where it was neither committed nor changed: it would be in the way of the project's. Refused while somebody
    holds a claim that is not one of those that end, and where no remote has the project's."""
    ctx = call.ctx
    if found.found and has_committed_root(ctx):
        require_the_named(ctx, found.remotes)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(ctx.host.wall()))
    root = ctx.settings.get("gitcoord.root")
    kept = app.tear_down(ctx, None, stamp, force=False, ends=found.ends)["archive"]
    remove_starter(ctx.repo, root, ctx.remote, dry_run=False)
    call.screen.say(f"this clone's own ledger is kept at {kept}")
    call.ctx.store.close()
    call.ctx = open_repository(call.environ, writing=True)


LOCAL = "local"  # the authority is this clone alone
_ARCHIVE = "archive this clone's own ledger, which is not the project's"


def ledger_lines(call: Call, found: Membership, trunk: str) -> list[str]:
    """The changes of the ledger that will be made."""
    names = " or ".join(quote(name) for name in found.remotes)
    lines = [_ARCHIVE] if found.other else []
    lines += [
        f"end the claim of {printable(agent)} on {quote(path)}, which only that ledger knows"
        for path, agent in found.ends
    ]
    if found.found:
        return [*lines, f"join the ledger of {names}"]
    if found.here and not found.other:
        moves = found.remote and found.remote != call.ctx.remote
        return [f"move this clone's ledger to {names}, for all its clones"] if moves else []
    where = f" at {names}, unless it has one" if names else ""
    return [*lines, f"make the ledger{where}; work lands on '{printable(trunk)}'"]


def tell_authority(call: Call, found: Membership, remote: str) -> None:
    """Say which authority decides now, what was not seen, and how a local ledger is shared."""
    call.screen.note(*(f"note: {quote(name)} was not looked at: {printable(why)}" for name, why in found.silent))
    if remote:
        url = printable(without_secrets(remote_url(call.ctx.repo.env, remote).text.strip()))
        call.screen.say(f"authority: {quote(remote)} ({url}); every clone that runs 'git coord setup' uses this ledger")
        return
    call.screen.say("authority: this clone alone; claims made here are not seen in other clones")
    if found.known:
        name = "origin" if "origin" in found.known else found.known[0]
        call.screen.hint(f"share it with all clones of {quote(name)}: git coord setup --remote {shell_word(name)}")


def in_the_way(call: Call, ref: str, *, dry_run: bool) -> list[str]:
    """Take away the starter files that would be in the way of pulling the policy at this fetched ref: those that were neither
    committed nor changed."""
    ctx = call.ctx
    root = ctx.settings.get("gitcoord.root")
    return list(remove_starter(ctx.repo, root, ctx.remote, dry_run=dry_run)[0]) if ref else []


def pushed_policy(call: Call, found: Membership) -> str:
    """The same as `fetched_policy`, after trunk was fetched where a remote has a ledger: a colleague may have pushed the policy since this clone
    was made."""
    ctx = call.ctx
    if found.found and not ctx.local.resolve([f"HEAD:{CONFIG}"])[0]:
        try:
            fetch_sync(ctx, found.remote, sync_branch(ctx))
        except GitcoordError:
            return ""  # there is no trunk yet; a remote that does not answer is told of elsewhere
        ctx.store.refresh()
    return fetched_policy(ctx)


def tell_policy(call: Call, ref: str, *, unpushed: bool) -> None:
    """Say that the policy is at this fetched ref and is to be pulled; `unpushed`: or that the ledger is there and no policy is."""
    if ref:
        name = quote(ref.removeprefix("refs/remotes/"))
        if is_beside_trunk(call.ctx):
            call.screen.note(f"note: {CONFIG} here names another ledger than the project's policy at {name}")
            call.screen.hint("bring that in: git coord sync --pull")
            return
        call.screen.note(f"note: the policy is committed at {name}, and not yet here: none was written")
        call.screen.hint("pull first: git pull")
    elif unpushed:
        call.screen.note(
            "note: the ledger was there already, and no policy is pushed there yet, so one was written here"
        )
        call.screen.hint("if a colleague is setting up, wait for that push instead, then: git fetch && git coord setup")


def is_asked(values: Values) -> bool:
    return not values.get("yes") and at_terminal()


def confirm(values: Values, question: str) -> None:
    """Only a person is asked, who has not said --yes."""
    if not is_asked(values):
        return
    if not said_yes(question):
        raise refused("declined", "nothing was changed")


def said_yes(question: str) -> bool:
    put(2, f"{question} [Y/n] ")
    answer = sys.stdin.readline()
    return bool(answer) and answer.strip().lower() in ("", "y", "yes")
