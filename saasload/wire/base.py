"""What every wire format offers: rows → bytes → outcomes, without any I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from saasload.model import Call, Company, Note, Outcomes, Reply, Request
from saasload.wire.values import Table


def address(path: str, company: Company) -> str:
    """Put a company's code into a path of the profile, escaped: a code may hold what an address may not.

    >>> address("/v1/{company}/Accounts", Company("A&B"))
    '/v1/A%26B/Accounts'
    """
    return path.replace("{company}", quote(company, safe=""))


@dataclass(frozen=True, slots=True)
class Refusal:
    """The whole call was refused and nothing of it applied, without saying which row is at fault."""

    note: Note


class WireFormat(Protocol):
    """How rows travel.

    `max_rows` and `max_bytes` bound one call; `overhead` is the number of bytes a call weighs beside its
    fragments; `needs_key` tells that answers can only be matched to rows that have a natural key.
    """

    name: str
    needs_key: bool
    max_rows: int
    max_bytes: int
    overhead: int

    def encode(self, table: Table, company: Company) -> Sequence[bytes]:
        """Encode each row of a table, in order."""
        ...

    def request(self, call: Call) -> Request:
        """Pack a call's fragments into the request that carries them."""
        ...

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Say what a 2xx reply tells of the call's rows; rows it is silent about are left out.

        Raises DecodeError where the reply cannot be read at all.
        """
        ...
