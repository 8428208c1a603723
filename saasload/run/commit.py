"""Group commit: many records, one durable write, then their calls leave."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

from saasload.errors import RunFolderError

Record = TypeVar("Record")
Write = Callable[[Sequence[Record]], None]

TURNS = 3
"""How often the event loop goes round before a write begins."""


class _Batch(Generic[Record]):
    """Records that become durable together; `wanted` tells that somebody waits for it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.wanted = False
        self.ended = anyio.Event()
        self.error: RunFolderError | None = None
        self.fault: BaseException | None = None
        self.told = False


class GroupCommit(Generic[Record]):
    """Collects records while a write is under way, and writes them together when it ends.

    There is no waiting window and no task of its own: a write begins with the first who waits, and the next where
    it ends. With `threads` it runs in a thread of its own (asyncio only), so that a slow disk stops nobody else; on
    a virtual clock, which takes a thread for asleep, it runs in place.
    """

    def __init__(self, write: Write[Record], *, threads: bool) -> None:
        """Write through a function that makes records durable or raises RunFolderError."""
        self._write = write
        self._writer = _Writer(write, self._end) if threads else None
        self._open: _Batch[Record] | None = None
        self._busy: _Batch[Record] | None = None
        self._failed: _Batch[Record] | None = None
        self._coming = False

    def add(self, record: Record) -> None:
        """Take a record; it becomes durable with the next one that is waited for."""
        if self._open is None:
            self._open = _Batch()
        self._open.records.append(record)

    async def durable(self) -> None:
        """Wait until all records taken so far are durable. Raises RunFolderError where they cannot be made so."""
        batch = self._open or self._busy
        if batch is None:
            return
        if not batch.wanted:
            batch.wanted = True
            if self._writer is not None:
                self._begin_soon()
            else:
                try:
                    # Whoever is ready to run now may have a record for this write.
                    await anyio.lowlevel.checkpoint()
                finally:
                    self._begin()
        await batch.ended.wait()
        if batch.fault is not None:
            fault, batch.fault = batch.fault, None
            raise fault
        if batch.error is not None:
            batch.told = True
            raise RunFolderError(str(batch.error)) from batch.error

    def close(self) -> None:
        """Write what is left, in place, and end the thread.

        Raises RunFolderError where that fails, or where a write failed that nobody waited for to its end.
        """
        if self._writer is not None:
            self._writer.close()
        for batch in (self._busy, self._failed):
            if batch is not None and batch.error is not None and not batch.told:
                batch.told = True
                raise batch.error
        left, self._open = self._open, None
        if left is not None:
            self._write(left.records)

    def _begin_soon(self, turns: int = TURNS) -> None:
        """Begin a write when the loop has gone round some times: idle it does so at once, busy it brings more records.

        A write costs as much for one record as for a hundred, most of it in the kernel.
        """
        if self._busy is not None or (turns == TURNS and self._coming):
            return
        self._coming = turns > 0
        if turns:
            asyncio.get_running_loop().call_soon(self._begin_soon, turns - 1)
        else:
            self._begin()

    def _begin(self) -> None:
        if self._busy is not None or self._open is None:
            return
        batch, self._open = self._open, None
        self._busy = batch
        if self._writer is not None:
            self._writer.start(batch)
        else:
            _write_through(self._write, batch)
            self._end(batch)

    def _end(self, batch: _Batch[Record]) -> None:
        self._busy = None
        batch.ended.set()
        if batch.error is not None:
            self._failed = batch
        if self._open is not None and self._open.wanted:
            self._begin_soon()


def _write_through(write: Write[Record], batch: _Batch[Record]) -> None:
    """Write a batch, and keep what went wrong for those who wait: a fault of ours for one of them."""
    try:
        write(batch.records)
    except RunFolderError as error:
        batch.error = error
    except BaseException as error:  # noqa: BLE001 whoever waits is told
        batch.fault = error
        batch.error = RunFolderError(f"the journal cannot be written: {error}")


class _Writer(Generic[Record]):
    """One thread for all writes: handing work to a pool costs more than the write itself."""

    def __init__(self, write: Write[Record], ended: Callable[[_Batch[Record]], None]) -> None:
        self._write = write
        self._ended = ended
        self._queue: SimpleQueue[_Batch[Record] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, batch: _Batch[Record]) -> None:
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._run, args=(loop,), name="saasload-journal", daemon=True)
            self._thread.start()
        self._queue.put(batch)

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while (batch := self._queue.get()) is not None:
            _write_through(self._write, batch)
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(self._ended, batch)
