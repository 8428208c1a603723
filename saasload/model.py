"""The nouns: what travels between the rooms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NewType

Company = NewType("Company", str)
"""One partition of the platform, by the code the platform knows it by."""

ROW_COLUMN = "__row__"
"""The column that a spooled batch keeps its source row numbers in."""


class RowStatus(IntEnum):
    """One row's outcome."""

    CREATED = 1
    UPDATED = 2
    UNCHANGED = 3
    REJECTED = 4
    NOT_ATTEMPTED = 5
    IN_DOUBT = 6

    # An enum's own hash is that of its name, worked out in Python at each look into a count of rows.
    __hash__ = int.__hash__

    @property
    def accepted(self) -> bool:
        """Whether the target holds the row now."""
        return self <= RowStatus.UNCHANGED


@dataclass(frozen=True, slots=True)
class Note:
    """Why a row has the outcome it has.

    `reason` is a stable word for programs, `message` the sentence for people (the
    target's own where it gave one), `field` the field at fault, `http_status` the
    status of the answer, 0 where there was none.
    """

    reason: str
    message: str = ""
    field: str = ""
    http_status: int = 0


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of some rows, side by side.

    `ids` holds the target's own id of each row, "" where it gave none; `notes` has an
    entry for rows that are not plainly accepted; `retry_after` is the longest Retry-After among the parts
    of an answer that were not executed, as it came.
    """

    rows: Sequence[int]
    statuses: Sequence[RowStatus]
    ids: Sequence[str]
    notes: Mapping[int, Note] = field(default_factory=dict)
    retry_after: str | None = None

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)


def all_rows(rows: Sequence[int], status: RowStatus, note: Note | None = None) -> Outcomes:
    """Give every row the same outcome.

    >>> all_rows([7, 9], RowStatus.CREATED).statuses
    [<RowStatus.CREATED: 1>, <RowStatus.CREATED: 1>]
    """
    notes = {} if note is None else dict.fromkeys(rows, note)
    return Outcomes(rows, [status] * len(rows), [""] * len(rows), notes)


@dataclass(frozen=True, slots=True)
class Fragments:
    """Encoded rows of one company, side by side: what calls are packed from.

    `rows` are source row numbers, `bodies` their bytes, `keys` their natural keys ("" where a row has none).
    """

    rows: Sequence[int]
    bodies: Sequence[bytes]
    keys: Sequence[str]

    def __len__(self) -> int:
        """Count the rows."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request and the rows it answers for.

    `size` is the exact length of the request body in bytes; `attempt` starts at 1. A question carries no rows:
    it asks whether rows that were sent before are there.
    """

    company: Company
    fragments: Fragments
    size: int
    attempt: int = 1
    question: bool = False

    @property
    def rows(self) -> Sequence[int]:
        """The source row numbers it answers for."""
        return self.fragments.rows


@dataclass(frozen=True, slots=True)
class Request:
    """The bytes out: `path` is relative to the target's address and starts with a slash."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes in: header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Trip:
    """One request that left, or tried to: a line of the session's I/O list.

    `started` and `lasted` are seconds of target time; `status` is 0 where no answer came, and `note` says why.
    """

    call: Call
    started: float
    lasted: float
    status: int
    note: str
