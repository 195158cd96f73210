"""The tasks that are not over, without reading those that are: a project keeps every task that it ever had."""

from __future__ import annotations

from gitcoord.git.files import append_file, read_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.snapshot import Snapshot
from gitcoord.tasks.model import OVER, Task, number_of, task_file, task_record

_NOTE = "tasks-over"  # ids of blobs: a task that changes has another one
_MOST = 1 << 26


def open_tasks(ctx: Context, snapshot: Snapshot) -> list[Task]:
    """The tasks that are not over, oldest first. A note names the blobs of those that were seen over; these are not read again."""
    files = snapshot.files("tasks")
    known = set(read_file(f"{ctx.repo.scratch}/{_NOTE}", _MOST).decode("ascii", "replace").split("\n")) if files else ()
    asked = [key for key, oid in files.items() if oid not in known]
    snapshot.state.prefetch([("file", key) for key in asked])
    found = [
        record for key in asked if (record := task_record(snapshot.state, key[len("tasks/") : -len(".md")])) is not None
    ]
    over = "".join(f"{files[task_file(task.id)]}\n" for task in found if task.state in OVER)
    if over:
        try:
            append_file(ctx.scratch(_NOTE), over.encode())
        except OSError:
            pass  # without the note they are read again
    return sorted((task for task in found if task.state not in OVER), key=lambda task: number_of(task.id))
