"""Start and end a process quickly: what only a program may do, since a library shares its process with others.

A load of a few thousand rows takes about a second, and loading the libraries took longer than that. What they load
for uses we have none for is left out, and the end of the process looks through none of it.
"""

import atexit
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

# numpy: pyarrow takes it along where it is installed (60 ms); a load has no arrays of it.
# pyarrow's file systems of several clouds, each with a client library of its own (8 ms).
# httpx._main: httpx's own command line, with click, rich and pygments (60 ms).
_CLOUDS = ("pyarrow._azurefs", "pyarrow._gcsfs", "pyarrow._hdfs", "pyarrow._s3fs")
_UNUSED = ("numpy", "httpx._main", *_CLOUDS)

_MANY = 100_000
_SELDOM = (20_000, 20, 20)
_program = False


def begin() -> None:
    """Take this process to be ours alone. Called by the program's entry, never where somebody imports us."""
    global _program  # noqa: PLW0603 there is one process, and it is ours or it is not
    _program = True
    # Imports make many objects and no garbage; the default looks for some each 700 objects.
    gc.set_threshold(_MANY, *gc.get_threshold()[1:])
    # pydantic looks for plug-ins in every distribution that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # At its end the interpreter collects garbage several times over: 0.1 s for what the system takes back anyway.
    atexit.register(gc.freeze)


@contextlib.contextmanager
def imports() -> Iterator[None]:
    """Import a load's rooms in here; in a process of our own their libraries load without what no load uses."""
    if not _program:
        yield
        return
    import ssl  # noqa: PLC0415 help must not pay for it

    gc.disable()
    hidden = [name for name in _UNUSED if name not in sys.modules]
    nothing: Any = None  # how an import is told that there is no such module
    sys.modules.update(dict.fromkeys(hidden, nothing))
    ssl.SSLContext.set_default_verify_paths = _none  # type: ignore[method-assign,assignment]
    try:
        _arrow()
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths
        for name in hidden:
            del sys.modules[name]
        gc.freeze()  # all this stays to the end: no collection has to look through it
        gc.set_threshold(*_SELDOM)  # a load makes tuples by the hundred, and hardly any rings of them
        gc.enable()


def _arrow() -> None:
    """Import pyarrow's functions without the manual page that it writes for each of them (18 ms)."""
    import pyarrow as pa  # noqa: F401, PLC0415 help must not pay for it

    pages, no_pages = "pyarrow.vendored.docscrape", ModuleType("docscrape")
    no_pages.NumpyDocString = lambda _text: {"Parameters": ()}  # type: ignore[attr-defined]
    before = sys.modules.setdefault(pages, no_pages)
    try:
        # where another pyarrow wants more of that module, it is imported again, and as usual
        with contextlib.suppress(Exception):
            import pyarrow.compute  # noqa: F401, PLC0415 the same
    finally:
        if before is no_pages:
            del sys.modules[pages]


def _none(*_: object) -> None:
    # aiohttp makes two contexts as it is imported and loads all the system's authorities into both (2 x 22 ms). Our
    # transport brings its own context to each call that needs one; and whoever trusts nobody refuses, never accepts.
    pass
