"""Requests of one machine that ride in one push.

Two files in scratch, changed only by whoever stands in the writers' queue: `open` is what was decided and waits, `flying`
what its carrier is pushing. Each request is decided on top of both. A batch lands whole or is lost whole; then an outcome
is noted under its id, for all whose requests were in it. Only refs are kept here: the objects are in the repository.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, dumps, loads
from gitcoord.base.errors import StoreError
from gitcoord.git.files import list_files, read_file, remove_file, rename, write_file
from gitcoord.git.store import RefUpdate, Verify
from gitcoord.ledger.remote.mirror_store import as_update
from gitcoord.startup.namedtuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.base.names import Oid, RefName
    from gitcoord.git.store import Operation
    from gitcoord.ledger.context import Context

QUEUED, PUSHING = "open", "flying"
_LIMIT = 1 << 24
_OUTCOMES = 256


class Batch(NamedTuple):
    id: str
    agents: tuple[str, ...]  # one for each request
    since: int  # when it was opened, on this machine's monotonic clock
    moves: tuple[RefUpdate, ...]

    @property
    def refs(self) -> dict[RefName, Oid | None]:
        return {m.ref: m.new or None for m in self.moves}


class PushResult(NamedTuple):
    kind: str
    words: str = ""


def load_batch(ctx: Context, name: str) -> Batch | None:
    data = read_file(ctx.scratch(f"batch/{name}"), _LIMIT)
    if not data:
        return None
    try:
        record = loads(data, _LIMIT)
        moves = tuple(RefUpdate(ref, old, new) for ref, old, new in record["moves"])
        return Batch(record["id"], tuple(record["agents"]), record["since"], moves)
    except (Malformed, KeyError, TypeError, ValueError):
        raise StoreError(
            f"what waits to be pushed cannot be read: {ctx.scratch('batch/' + name)}",
            hints=("remove that file: whoever waits for it asks again",),
        ) from None


def store_batch(ctx: Context, name: str, batch: Batch | None) -> None:
    path = ctx.scratch(f"batch/{name}")
    if batch is None:
        remove_file(path)
        return
    record = {
        "v": 1,
        "id": batch.id,
        "agents": list(batch.agents),
        "since": batch.since,
        "moves": [list(m) for m in batch.moves],
    }
    write_file(path, dumps(record).encode())


def start_push(ctx: Context) -> None:
    """What waits is what flies now."""
    rename(ctx.scratch(f"batch/{QUEUED}"), ctx.scratch(f"batch/{PUSHING}"))


def overlay(ctx: Context) -> dict[RefName, Oid | None]:
    """The refs that will be elsewhere if all that waits lands. What is only verified is where it is: it may have moved on."""
    refs: dict[RefName, Oid | None] = {}
    for name in (PUSHING, QUEUED):
        batch = load_batch(ctx, name)
        if batch is not None:
            refs.update({m.ref: m.new or None for m in batch.moves if m.new != m.old})
    return refs


def join(ctx: Context, agent: str, operations: list[Operation]) -> Batch:
    """Put a request's operations on top of the open batch, or open one."""
    batch = load_batch(ctx, QUEUED) or Batch(ctx.host.random()[:16], (), ctx.host.mono(), ())
    rows = {m.ref: m for m in batch.moves}
    for operation in operations:
        m = as_update(operation)
        if isinstance(operation, Verify) and m.ref in rows:
            continue  # it was decided on what the batch itself leaves there
        rows[m.ref] = rows[m.ref]._replace(new=m.new) if m.ref in rows else m
    batch = batch._replace(agents=(*batch.agents, agent), moves=tuple(rows.values()))
    store_batch(ctx, QUEUED, batch)
    return batch


def note_result(ctx: Context, batch: Batch | None, outcome: PushResult) -> None:
    """For all whose requests were in it."""
    if batch is None:
        return
    known = list_files(ctx.scratch("outcomes/x").rpartition("/")[0])
    if len(known) > 2 * _OUTCOMES:
        for name in sorted(known, key=lambda name: read_file(ctx.scratch(f"outcomes/{name}"), 20))[:_OUTCOMES]:
            remove_file(ctx.scratch(f"outcomes/{name}"))
    text = f"{ctx.host.mono():020}\n{outcome.kind}\n{outcome.words}"
    write_file(ctx.scratch(f"outcomes/{batch.id}"), text.encode("utf-8", "replace"))


def result_of(ctx: Context, batch_id: str) -> PushResult | None:
    head, _, rest = read_file(ctx.scratch(f"outcomes/{batch_id}")).decode("utf-8", "replace").partition("\n")
    kind, _, words = rest.partition("\n")
    return PushResult(kind, words) if head else None
