"""Batches: requests of one clone that are pushed together.

Two files in the scratch directory, changed only under the writers' queue: QUEUED has the requests that were decided and
wait, PUSHING those that a process is pushing. Each request is decided on top of both. A batch lands or fails as a whole; the
result is then noted under its id for all processes whose requests are in it. The files name refs only: the objects are in
the repository.
"""

from __future__ import annotations

from gitcoord.base.codec import Malformed, dumps, loads
from gitcoord.base.errors import StoreError
from gitcoord.base.names import Oid, RefName
from gitcoord.git.files import list_files, read_file, remove_file, rename, write_file
from gitcoord.git.store import Operation, RefUpdate, Verify, as_update
from gitcoord.ledger.context import Context
from gitcoord.ledger.remote.git_remote import RemoteResult
from gitcoord.startup.annotations import Sequence
from gitcoord.startup.namedtuple import NamedTuple

QUEUED, PUSHING = "open", "flying"  # names of files
_LIMIT = 1 << 24
_KEPT_RESULTS = 256


class Batch(NamedTuple):
    id: str
    agents: tuple[str, ...]  # one for each request
    since: int  # when it was opened, on this machine's monotonic clock
    moves: tuple[RefUpdate, ...]

    @property
    def refs(self) -> dict[RefName, Oid | None]:
        return {m.ref: m.new or None for m in self.moves}


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
            f"the batch that waits to be pushed cannot be read: {ctx.scratch('batch/' + name)}",
            hints=("remove that file: the commands that wait for it try again",),
        ) from None


def store_batch(ctx: Context, name: str, batch: Batch) -> None:
    record = {"v": 1, **batch._asdict(), "moves": [list(m) for m in batch.moves]}
    write_file(ctx.scratch(f"batch/{name}"), dumps(record).encode())


def drop_batch(ctx: Context, name: str) -> None:
    remove_file(ctx.scratch(f"batch/{name}"))


def start_push(ctx: Context) -> None:
    """The queued batch becomes the one that is being pushed."""
    rename(ctx.scratch(f"batch/{QUEUED}"), ctx.scratch(f"batch/{PUSHING}"))


def overlay(ctx: Context) -> dict[RefName, Oid | None]:
    """The refs that both batches change, as they will be if all lands. Refs that are only verified are left out."""
    refs: dict[RefName, Oid | None] = {}
    for name in (PUSHING, QUEUED):
        batch = load_batch(ctx, name)
        if batch is not None:
            refs.update({m.ref: m.new or None for m in batch.moves if m.new != m.old})
    return refs


def join(ctx: Context, agent: str, operations: Sequence[Operation]) -> Batch:
    """Add a request's operations to the queued batch, or open one."""
    batch = load_batch(ctx, QUEUED) or Batch(ctx.host.random()[:16], (), ctx.host.mono(), ())
    rows = {m.ref: m for m in batch.moves}
    for operation in operations:
        m = as_update(operation)
        if isinstance(operation, Verify) and m.ref in rows:
            continue  # it was decided on the value that the batch itself sets
        rows[m.ref] = rows[m.ref]._replace(new=m.new) if m.ref in rows else m
    batch = batch._replace(agents=(*batch.agents, agent), moves=tuple(rows.values()))
    store_batch(ctx, QUEUED, batch)
    return batch


def note_result(ctx: Context, batch: Batch | None, result: RemoteResult) -> None:
    """Note the result for all processes whose requests were in the batch."""
    if batch is None:
        return
    known = list_files(ctx.scratch("outcomes/x").rpartition("/")[0])
    if len(known) > 2 * _KEPT_RESULTS:
        for name in sorted(known, key=lambda name: read_file(ctx.scratch(f"outcomes/{name}"), 20))[:_KEPT_RESULTS]:
            remove_file(ctx.scratch(f"outcomes/{name}"))
    text = f"{ctx.host.mono():020}\n{result.kind}\n{result.words}"
    write_file(ctx.scratch(f"outcomes/{batch.id}"), text.encode("utf-8", "replace"))


def result_of(ctx: Context, batch_id: str) -> RemoteResult | None:
    head, _, rest = read_file(ctx.scratch(f"outcomes/{batch_id}")).decode("utf-8", "replace").partition("\n")
    kind, _, words = rest.partition("\n")
    return RemoteResult(kind, words) if head else None
