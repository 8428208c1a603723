"""Tell whether a source is still the file it was."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from saasload.errors import UsageError

BLOCK = 8 * 2**20


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A file's size, and a digest of each block of 8 MiB. Its times do not count: a copy is the same file."""

    size: int
    blocks: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """Write it as plain data."""
        return asdict(self)

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> "Fingerprint":
        """Read what `facts` wrote."""
        return cls(int(facts["size"]), tuple(facts["blocks"]))


def fingerprint(path: Path) -> Fingerprint:
    """Read a file through; a gigabyte takes about a second."""
    size, blocks = 0, []
    try:
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                size += len(block)
                blocks.append(hashlib.blake2b(block, digest_size=16).hexdigest())
    except OSError as error:
        message = f"{path.name}: cannot be read: {(error.strerror or str(error)).lower()}"
        raise UsageError(message) from error
    return Fingerprint(size, tuple(blocks))


def what_changed(before: Fingerprint, now: Fingerprint) -> str:
    """Say in words what differs between two states of a file; "" where nothing does.

    >>> what_changed(Fingerprint(3, ("a",)), Fingerprint(4, ("b",)))
    'it had 3 bytes and has 4'
    """
    if before.size != now.size:
        return f"it had {before.size:,} bytes and has {now.size:,}"
    for place, (old, new) in enumerate(zip(before.blocks, now.blocks, strict=True)):
        if old != new:
            return f"its {now.size:,} bytes differ, first between byte {place * BLOCK:,} and {(place + 1) * BLOCK:,}"
    return ""
