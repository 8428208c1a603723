"""`insert`: one POST a row, verbose JSON (OData V2 JSON verbose format)."""

from collections.abc import Mapping, Sequence

import orjson

from saasload.errors import DecodeError
from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus
from saasload.profile import EntitySpec, InsertSpec, PlatformProfile
from saasload.wire.base import Refusal, address
from saasload.wire.joined import bodies
from saasload.wire.json_rows import json_rows
from saasload.wire.values import Table


class InsertFormat:
    """One call carries one row; its whole answer is the row's."""

    name = "insert"
    needs_key = False
    max_rows = 1
    overhead = 0

    def __init__(self, profile: PlatformProfile, entity: EntitySpec, spec: InsertSpec) -> None:
        """Take what the profile says of the entity and of this mode."""
        self.max_bytes = spec.max_bytes
        self._fields = entity.fields
        self._key = entity.key
        self._decimals = profile.json_decimal
        self._path = spec.path
        self._paths: dict[Company, str] = {}
        self._headers: Mapping[str, str] = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            **profile.headers,
        }

    def encode(self, table: Table, company: Company) -> Sequence[bytes]:  # noqa: ARG002 the path names the company
        """Encode each row as one JSON object."""
        return bodies(json_rows(table, self._fields, self._decimals))

    def request(self, call: Call) -> Request:
        """Post the row to its company's collection."""
        path = self._paths.get(call.company)
        if path is None:
            path = self._paths[call.company] = address(self._path, call.company)
        return Request("POST", path, self._headers, call.fragments.bodies[0])

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Take the new row's id from `d`; an answer that is not JSON is no answer about the row."""
        status, identity, note = read_created(reply.status, reply.body, call.fragments.keys[0], self._key)
        row = call.rows[0]
        return Outcomes(call.rows, [status], [identity], {} if note is None else {row: note})


def read_created(status: int, body: bytes, key: str, key_field: str) -> tuple[RowStatus, str, Note | None]:
    """Read the answer to one successful POST of an entity: its outcome, its id, and a note if it is odd.

    204 and an empty 201 are successes without an id (OData V2 operations, section 2.2.3.5 and `Prefer`).
    Raises DecodeError for a body that is not the JSON of an entity.
    """
    if status == 204 or (status == 201 and not body):
        return RowStatus.CREATED, "", None
    try:
        found = orjson.loads(body)
        # 201 says that it is created, also where the entity stands bare (V4) or in another flavour of JSON.
        entity = found if status == 201 and "d" not in found and "error" not in found else found["d"]
        identity = entity.get("ID", "")
        stored = entity.get(key_field)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"HTTP {status} with a body that is not an entity: {body[:60]!r}"
        raise DecodeError(message) from error
    if key and isinstance(stored, str) and stored.strip() != key.strip():
        note = Note("other-row", f"the answer speaks of {key_field} {stored.strip()}", key_field, status)
        return RowStatus.IN_DOUBT, "", note
    return RowStatus.CREATED, identity if isinstance(identity, str) else "", None
