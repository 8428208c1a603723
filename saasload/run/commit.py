"""Group commit: many records, one durable write, then their calls leave."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from saasload.errors import RunFolderError

Record = TypeVar("Record")


class _Batch(Generic[Record]):
    """Records that become durable together."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.done = False
        self.error: RunFolderError | None = None


class GroupCommit(Generic[Record]):
    """Collects records while a write is under way, and writes them together when it ends.

    There is no waiting window and no task of its own: whoever waits first writes for all who wait by then.
    With `threads` the write runs in a thread, so that a slow disk stops nobody else; on a virtual clock, which
    takes a thread for asleep, it runs in place.
    """

    def __init__(self, write: Callable[[Sequence[Record]], None], *, threads: bool) -> None:
        """Write through a function that makes records durable or raises RunFolderError."""
        self._write = write
        self._threads = threads
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
        """Write what is left, in place."""
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
                if self._threads:
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(self._write, batch.records)
                else:
                    self._write(batch.records)
            except RunFolderError as error:
                batch.error = error
            batch.done = True
        finally:
            self._busy = False
            ended, self._ended = self._ended, anyio.Event()
            ended.set()
