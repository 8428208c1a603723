"""`batch`: OData `$batch`, multipart/mixed with change sets (OData V2 batch processing; V3 and V4 part 1, 11.7)."""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from saasload.answers import message_of, row_answer
from saasload.errors import DecodeError
from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus
from saasload.profile import BatchSpec, EntitySpec, PlatformProfile
from saasload.wire.base import Refusal, address
from saasload.wire.insert import read_created
from saasload.wire.joined import bodies, joined
from saasload.wire.json_rows import json_rows
from saasload.wire.multipart import HttpPart, all_parts, boundary_of, usual_parts
from saasload.wire.values import Table

# A delimiter is looked for at the start of a line, and JSON text holds no line ends of its own:
# nothing a row can hold is ever taken for one, so they need not be random.
BATCH = "batch_saasload"
CHANGE_SET = "changeset_saasload"

_OPEN_SET = f"--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGE_SET}\r\n\r\n".encode()
_CLOSE_SET = f"--{CHANGE_SET}--\r\n".encode()
_CLOSE = f"--{BATCH}--\r\n".encode()

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


class BatchFormat:
    """Up to `max_rows` POSTs in one request; a row's Content-ID is its source row number.

    With `change_set = "row"` every row stands alone, so a bad one sinks no other; with "call" they stand
    or fall together.
    """

    name = "batch"
    needs_key = False

    def __init__(self, profile: PlatformProfile, entity: EntitySpec, spec: BatchSpec) -> None:
        """Take what the profile says of the entity and of this mode."""
        self.max_rows = spec.max_rows
        self.max_bytes = spec.max_bytes
        self._alone = spec.change_set == "row"
        self.overhead = len(_CLOSE) if self._alone else len(_OPEN_SET) + len(_CLOSE_SET) + len(_CLOSE)
        self._fields = entity.fields
        self._key = entity.key
        self._decimals = profile.json_decimal
        self._answers = profile.answers
        self._path = spec.path
        self._part_path = spec.part_path
        self._headers = {
            "Content-Type": f"multipart/mixed; boundary={BATCH}",
            "Accept": "multipart/mixed",
            **profile.headers,
        }

    def encode(self, table: Table, company: Company) -> Sequence[bytes]:
        """Encode each row as a change-set part, with its own change set around it where rows stand alone."""
        opening, closing = (_OPEN_SET.decode(), _CLOSE_SET.decode()) if self._alone else ("", "")
        before = (
            f"{opening}--{CHANGE_SET}\r\nContent-Type: application/http\r\n"
            "Content-Transfer-Encoding: binary\r\nContent-ID: "
        )
        between = (
            f"\r\n\r\nPOST {address(self._part_path, company)} HTTP/1.1\r\nContent-Type: application/json\r\n"
            "Accept: application/json\r\nContent-Length: "
        )
        entities = json_rows(table, self._fields, self._decimals)
        lengths = pc.cast(pc.binary_length(entities), pa.string())
        rows = pa.array(map(str, table.rows), pa.string())
        parts = [before, rows, between, lengths, "\r\n\r\n", entities, f"\r\n{closing}"]
        return bodies(joined(parts, len(table.rows)))

    def request(self, call: Call) -> Request:
        """Join the parts into one multipart body."""
        inside = b"".join(call.fragments.bodies)
        body = inside + _CLOSE if self._alone else _OPEN_SET + inside + _CLOSE_SET + _CLOSE
        return Request("POST", address(self._path, call.company), self._headers, body)

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Match the parts to rows by Content-ID.

        A part without one is matched by its place only where the answer has exactly one part a row and no
        Content-ID in it contradicts the order, which the protocol fixes (OData V2 batch, section 2.2.7.6.4).
        """
        boundary = boundary_of(reply.headers.get("content-type", "").encode("utf-8", "replace"))
        try:
            parts = usual_parts(reply.body, boundary) or all_parts(reply.body, boundary)
        except RecursionError as error:
            message = "a multipart answer nested without end"
            raise DecodeError(message) from error
        if not self._alone and len(parts) == 1 and parts[0].status >= 400 and len(call.rows) > 1:
            return self._sunk(call, parts[0])
        return self._matched(call, parts)

    def _matched(self, call: Call, parts: Sequence[HttpPart]) -> Outcomes:
        rows = call.rows
        keys = dict(zip(rows, call.fragments.keys, strict=True))
        named = [_row_number(part.content_id) for part in parts]
        by_place = named == rows or (
            len(parts) == len(rows)
            and all(number is None or number == row for number, row in zip(named, rows, strict=True))
        )
        answered: list[int] = []
        statuses: list[RowStatus] = []
        ids: list[str] = []
        notes: dict[int, Note] = {}
        waits: list[str] = []
        for row, part in zip(rows if by_place else named, parts, strict=True):
            if row is None or row not in keys:
                continue
            status, identity, note = self._outcome(part, keys[row])
            answered.append(row)
            statuses.append(status)
            ids.append(identity)
            if note is not None:
                notes[row] = note
                if status is RowStatus.NOT_ATTEMPTED:
                    waits.append(part.header(b"retry-after"))
        return Outcomes(answered, statuses, ids, notes, _longest(waits))

    def _outcome(self, part: HttpPart, key: str) -> tuple[RowStatus, str, Note | None]:
        if not 200 <= part.status < 300:
            status, note = row_answer(part.status, part.body, self._answers)
            return status, "", note
        try:
            return read_created(part.status, part.body, key, self._key)
        except DecodeError as error:
            return RowStatus.IN_DOUBT, "", Note("unreadable-answer", str(error), http_status=part.status)

    def _sunk(self, call: Call, part: HttpPart) -> Outcomes | Refusal:
        """Read the one error part that stands for a whole change set: nothing of it was applied."""
        status, note = row_answer(part.status, part.body, self._answers)
        if status is RowStatus.IN_DOUBT:
            return Outcomes(call.rows, [status] * len(call.rows), [""] * len(call.rows), dict.fromkeys(call.rows, note))
        if status is RowStatus.NOT_ATTEMPTED:
            notes = dict.fromkeys(call.rows, note)
            wait = _longest([part.header(b"retry-after")])
            return Outcomes(call.rows, [status] * len(call.rows), [""] * len(call.rows), notes, wait)
        guilty = _row_number(part.content_id)
        if guilty is None or guilty not in call.rows:
            return Refusal(Note(note.reason, message_of(part.body), http_status=part.status))
        statuses = [RowStatus.REJECTED if row == guilty else RowStatus.NOT_ATTEMPTED for row in call.rows]
        return Outcomes(call.rows, statuses, [""] * len(call.rows), {guilty: note})


def _longest(waits: Sequence[str]) -> str | None:
    """Choose the longest wait that parts ask for: the rows go again together."""
    seconds = [wait for wait in waits if _SECONDS.fullmatch(wait)]
    return max(seconds, key=float) if seconds else next((wait for wait in waits if wait), None)


def _row_number(content_id: str) -> int | None:
    return int(content_id) if content_id.isascii() and content_id.isdecimal() and len(content_id) <= 18 else None
