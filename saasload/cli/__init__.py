"""The command line: arguments in, words out."""

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code. Ctrl-C while it is still being loaded is one line, too."""
    try:
        from saasload.cli.app import main as run  # noqa: PLC0415 a Ctrl-C may come in the middle of it

        return run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("saasload: interrupted before anything was sent\n")
        return INTERRUPTED


def program() -> int:
    """Do what `main` does, as a process of its own."""
    from saasload.cli import lean  # noqa: PLC0415 only a program needs it

    lean.begin()
    return main()


__all__ = ["main", "program"]
