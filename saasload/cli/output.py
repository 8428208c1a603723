"""What programs read: one JSON object on stdout."""

import sys

from saasload.errors import RunFolderError


def emit(data: bytes, instead: str = "") -> None:
    """Write to stdout; where that fails, say what went wrong and where the same is to be found instead."""
    try:
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stdout = None  # or the interpreter tries again when it ends, and says so
        more = f"; it is in {instead}" if instead else ""
        message = f"stdout: cannot be written: {(error.strerror or str(error)).lower()}{more}"
        raise RunFolderError(message) from error
