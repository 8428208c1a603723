"""Group commit: many records, one durable write, then their calls leave."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel

from saasload.errors import RunFolderError

Record = TypeVar("Record")
Write = Callable[[Sequence[Record]], None]


class _Batch(Generic[Record]):
    """Records that become durable together."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.done = False
        self.error: RunFolderError | None = None


class GroupCommit(Generic[Record]):
    """Collects records while a write is under way, and writes them together when it ends.

    There is no waiting window and no task of its own: whoever waits first writes for all who wait by then.
    With `threads` the write runs in a thread of its own (asyncio only), so that a slow disk stops nobody else; on
    a virtual clock, which takes a thread for asleep, it runs in place.
    """

    def __init__(self, write: Write[Record], *, threads: bool) -> None:
        """Write through a function that makes records durable or raises RunFolderError."""
        self._write = write
        self._writer = _Writer(write) if threads else None
        self._open: _Batch[Record] = _Batch()
        self._busy = False
        self._ended = anyio.Event()

    def add(self, record: Record) -> None:
        """Take a record; it becomes durable with the next one that is waited for."""
        self._open.records.append(record)

    async def durable(self) -> None:
        """Wait until all records taken so far are durable. Raises RunFolderError where they cannot be made so."""
        batch = self._open
        if not batch.records and not self._busy:
            return
        while not batch.done:
            if self._busy:
                await self._ended.wait()
            else:
                await self._commit()
        if batch.error is not None:
            raise RunFolderError(str(batch.error)) from batch.error

    def close(self) -> None:
        """Write what is left, in place, and end the thread. Raises RunFolderError where that fails."""
        if self._writer is not None:
            self._writer.close()
        batch, self._open = self._open, _Batch()
        if batch.records:
            self._write(batch.records)

    async def _commit(self) -> None:
        self._busy = True
        try:
            # Whoever is ready to run now may have a record for this write.
            await anyio.lowlevel.checkpoint()
            batch, self._open = self._open, _Batch()
            try:
                if self._writer is not None:
                    with anyio.CancelScope(shield=True):
                        await self._writer.write(batch.records)
                else:
                    self._write(batch.records)
            except RunFolderError as error:
                batch.error = error
            except BaseException as error:
                batch.error = RunFolderError(f"the journal cannot be written: {error}")
                raise
            finally:
                batch.done = True
        finally:
            self._busy = False
            ended, self._ended = self._ended, anyio.Event()
            ended.set()


class _Writer(Generic[Record]):
    """One thread for all writes: handing work to a pool costs more than the write itself."""

    def __init__(self, write: Write[Record]) -> None:
        self._write = write
        self._queue: SimpleQueue[tuple[Sequence[Record], asyncio.Future[None]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def write(self, records: Sequence[Record]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="saasload-journal", daemon=True)
            self._thread.start()
        future = asyncio.get_running_loop().create_future()
        self._queue.put((records, future))
        await future

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            records, future = work
            try:
                self._write(records)
            except BaseException as error:  # noqa: BLE001 whoever waits is told
                future.get_loop().call_soon_threadsafe(_fail, future, error)
            else:
                future.get_loop().call_soon_threadsafe(_finish, future)


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _fail(future: "asyncio.Future[None]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
