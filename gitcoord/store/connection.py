"""One connection of a process that lives long: one push, in dulwich's hands and a thread of its own (`wire` makes them)."""

from collections.abc import Callable, Iterator
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any

from dulwich.client import GitClient
from dulwich.errors import SendPackError
from dulwich.objects import ZERO_SHA, ShaFile
from dulwich.pack import UnpackedObject, pack_objects_to_data

from gitcoord.store.far import FAILED, LANDED, LOST, UNKNOWN, UNREACHABLE, Move, Report, sort_out

SILENT = "silent"
NAME = "gitcoord-push"  # of the thread
_OUT = 0.01  # seconds: by then what is to be pushed has been sent, or others do not matter to it any more


class _Moved(Exception):
    """A ref is not where it was expected."""


class _HungUp(Exception):
    """Nothing is to be sent on this connection any more."""


class Connection:
    """One push: connected ahead, then told what is to move; how far it has come, what came of it.

    In a thread of its own, because not every transport can be told how long to wait: one that says nothing is left.
    """

    def __init__(self, client: GitClient, path: str, options: "tuple[str, ...]") -> None:
        self.options = options
        self._client = client
        self._wanted: dict[bytes, Move] = {}
        self._objects: list[ShaFile] = []
        self._heard: list[bytes] = []
        self._lock = Condition()
        self._out = Event()  # all of it was sent
        self._over = Event()
        self.told = Event()  # where the refs are there, or that it cannot be told
        self._asleep: float | None = None  # so many seconds it waits for a request
        self._ready = self.sent = self._left = False
        self._report: Report | None = None
        # A dulwich that has no such part is as good: the answer comes with the end of the push.
        self._tail = getattr(client, "_handle_receive_pack_tail", None)
        if self._tail is not None:
            client._handle_receive_pack_tail = self._finish  # type: ignore[method-assign]
        self.thread = Thread(target=self._run, args=(path.encode("utf-8", "surrogateescape"),), daemon=True, name=NAME)
        self.thread.start()

    def push(
        self, wanted: "dict[bytes, Move]", objects: "list[ShaFile]", seconds: float, meanwhile: "Callable[[], None]"
    ) -> Report:
        """What came of it. If that is not known in time, it sends nothing from then on that it has not begun to send."""
        end = monotonic() + seconds
        with self._lock:
            self._wanted, self._objects, self._ready = wanted, objects, True
            self._lock.notify()
        self._out.wait(_OUT)  # what is done meanwhile would hold up the thread that sends
        meanwhile()
        self._over.wait(end - monotonic())
        with self._lock:
            self._left = True
            words = f"no answer within {seconds:.0f} seconds"
            return self._report or Report(UNKNOWN if self.sent else SILENT, words)

    def hang_up(self) -> None:
        with self._lock:
            self._left = True
            self._lock.notify()

    def sleep(self, seconds: float) -> None:
        """Nobody needs it now; after so many seconds it ends."""
        with self._lock:
            self._asleep = seconds
            self._lock.notify()

    def wake(self) -> bool:
        """It is needed; False: it has ended."""
        with self._lock:
            self._asleep = None
            self._lock.notify()
            return not self._left and self._report is None

    def _run(self, path: bytes) -> None:
        options = [option.encode() for option in self.options] or None
        try:
            result = self._client.send_pack(
                path, self._update, self._pack, progress=self._heard.append, push_options=options, atomic=True
            )
            self._tell(self._read(result.ref_status))
        except _Moved as moved:
            self._tell(Report(LOST, f"{moved} is not where it was"))
        except SendPackError as error:
            self._tell(Report(FAILED, str(error)))
        except (
            Exception
        ) as error:  # each transport has errors of its own kinds, for passwords and broken connections too
            self._tell(Report(UNKNOWN if self.sent else UNREACHABLE, f"{type(error).__name__}: {error}"))

    def _finish(self, *words: Any, **named: Any) -> Any:
        """Once the server has reported, its refs are where they are: nobody waits for its last hooks and housekeeping."""
        self._out.set()
        parser = getattr(self._client, "_report_status_parser", None)
        if parser is not None:
            handle = parser.handle_packet

            def heed(packet: "bytes | None") -> None:
                handle(packet)
                if packet is None:
                    self._tell(self._read(dict(parser.check())))

            parser.handle_packet = heed
        assert self._tail is not None
        return self._tail(*words, **named)

    def _tell(self, report: Report) -> None:
        with self._lock:
            self._report = self._report or report
        self._out.set()
        self._over.set()
        self.told.set()

    def _read(self, status: "dict[bytes, str | None] | None") -> Report:
        reasons = [str(reason) for reason in (status or {}).values() if reason is not None]
        words = b"".join(self._heard).decode("utf-8", "replace").strip()
        return sort_out(reasons, words) if reasons else Report(LANDED)

    def _update(self, there: "dict[Any, Any]") -> "dict[Any, Any]":
        """What to move, now that it is known where everything is."""
        self.told.set()
        with self._lock:
            while not self._ready and not self._left:
                if not self._lock.wait(self._asleep) and self._asleep is not None:
                    self._left = True  # nobody came
            if self._left:
                raise _HungUp
        for ref, m in self._wanted.items():
            now = there.get(ref)
            if (now.decode() if now else None) != m.expected:
                raise _Moved(ref.decode("utf-8", "replace"))
        with self._lock:
            if self._left:
                raise _HungUp
            self.sent = True
        changed = {ref: m for ref, m in self._wanted.items() if m.new != m.expected}
        return {ref: m.new.encode() if m.new else ZERO_SHA for ref, m in changed.items()}

    def _pack(self, have: object, want: object, **_: object) -> "tuple[int, Iterator[UnpackedObject]]":
        count, data = pack_objects_to_data([(found, None) for found in self._objects])
        return count, iter(data)
