"""saasload with a journal that keeps nothing, to tell what the journal costs. No load is to be trusted to it."""

import sys
from typing import Any

from saasload.cli import program


def _forget() -> None:
    from saasload.run.commit import GroupCommit  # noqa: PLC0415 after the program's own imports

    async def at_once(self: "GroupCommit[Any]") -> None:
        self._open = None

    GroupCommit.durable = at_once  # type: ignore[method-assign]


if __name__ == "__main__":
    _forget()
    sys.exit(program())
