"""One process at a time in a run's folder."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from saasload.errors import RunFolderError, UsageError

FILE = "lock"


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Hold a run's folder; UsageError names the process that holds it already.

    The lock is the operating system's, so it ends with its process, however that ends.
    """
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        message = f"{path}: cannot be written: {os.strerror(error.errno or 0).lower()}"
        raise RunFolderError(message) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            message = f"run {folder.name}: in use by process {holder}; wait for it, or stop it, then try again"
            raise UsageError(message) from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the number in it
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
