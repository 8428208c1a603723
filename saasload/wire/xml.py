"""`xml`: chunked upload of a document; answers are messages matched to rows by their key.

Document: a root with one topic in it, the elements of a row in the order of the platform's schema, which is that
of the profile's fields. Answer: messages of type 0 (error), 1 (warning), 2 (success) and 3 (fatal).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from saasload.model import Call, Company, Note, Outcomes, Reply, Request, RowStatus
from saasload.profile import Answers, EntitySpec, PlatformProfile, XmlSpec
from saasload.wire.base import Refusal, address
from saasload.wire.joined import Part, bodies, joined, where_all
from saasload.wire.messages import MessageReader
from saasload.wire.values import Column, Table

_HEAD = (
    '<?xml version="1.0" encoding="utf-8"?>\n<{root} xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:noNamespaceSchemaLocation="{schema}"><{topic}>'
)
_FOOT = "</{topic}></{root}>"

# An attribute's line ends and tabs, and a carriage return anywhere, are changed by every XML reader
# unless they are written as references (XML 1.0 sections 2.11 and 3.3.3).
_REFERENCES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}


@dataclass(slots=True)
class _Element:
    """One element of the row's template, and the fields that fill it."""

    tag: str
    fixed: str = ""
    text: str | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    children: dict[str, "_Element"] = field(default_factory=dict)


class XmlFormat:
    """Up to `max_rows` rows in one document; the platform creates or updates each by its key."""

    name = "xml"
    needs_key = True

    def __init__(self, profile: PlatformProfile, entity: EntitySpec, spec: XmlSpec) -> None:
        """Take what the profile says of the entity and of this mode."""
        self.max_rows = spec.max_rows
        self.max_bytes = spec.max_bytes
        self._head = _HEAD.format(root=spec.root, schema=spec.schema_location, topic=spec.topic).encode()
        self._foot = _FOOT.format(root=spec.root, topic=spec.topic).encode()
        self._messages = MessageReader(spec.root)
        self.overhead = len(self._head) + len(self._foot)
        self._path = spec.path
        self._answers = profile.answers
        self._template = _template(entity, spec)
        self._headers = {"Content-Type": "application/xml; charset=utf-8", **profile.headers}

    def encode(self, table: Table, company: Company) -> Sequence[bytes]:  # noqa: ARG002 the path names the company
        """Encode each row as one element; absent fields are absent elements, which the platform leaves untouched."""
        columns = {column.name: column for column in table.columns}
        texts = _render(self._template, columns, len(table.rows)) or pa.nulls(len(table.rows), pa.string())
        if isinstance(texts, list):
            return bodies(joined(texts, len(table.rows)))
        return bodies(pc.fill_null(texts, f"<{self._template.tag}/>"))

    def request(self, call: Call) -> Request:
        """Join the elements into one document."""
        body = b"".join((self._head, *call.fragments.bodies, self._foot))
        return Request("POST", address(self._path, call.company), self._headers, body)

    def read(self, call: Call, reply: Reply) -> Outcomes | Refusal:
        """Match messages to rows by key; the same key twice is matched in the order sent."""
        waiting: dict[str, deque[int]] = defaultdict(deque)
        for row, key in zip(call.rows, call.fragments.keys, strict=True):
            waiting[key.strip()].append(row)
        answered: list[int] = []
        statuses: list[RowStatus] = []
        ids: list[str] = []
        notes: dict[int, Note] = {}
        judged: dict[tuple[str, str], tuple[RowStatus, Note | None]] = {}
        for kind, names, text in self._messages.read(reply.body):
            if kind == "1":
                continue  # a warning settles nothing, so it must not use up the row that it speaks of
            found = _row_of(names, waiting)
            if found is None:
                continue
            row, identity = found
            # most messages of an answer say the same
            outcome = judged.get((kind, text))
            if outcome is None:
                outcome = judged[kind, text] = _outcome(kind, text, self._answers)
            status, note = outcome
            answered.append(row)
            statuses.append(status)
            ids.append(identity.strip("{}") if status.accepted else "")
            if note is not None:
                notes[row] = note
        return Outcomes(answered, statuses, ids, notes)


def _template(entity: EntitySpec, spec: XmlSpec) -> _Element:
    """Lay the entity's fields out as the tree that one row becomes."""
    root = _Element(spec.element, _fixed(spec, ""))
    for name, field_spec in entity.fields.items():
        if field_spec.xml is None:
            continue
        *path, last = field_spec.xml.split("/")
        if not last.startswith("@"):
            path.append(last)
        element, place = root, ""
        for tag in path:
            place = f"{place}/{tag}" if place else tag
            element = element.children.setdefault(tag, _Element(tag, _fixed(spec, place)))
        if last.startswith("@"):
            element.attributes[last[1:]] = name
        else:
            element.text = name
    return root


def _fixed(spec: XmlSpec, place: str) -> str:
    given: Mapping[str, str] = spec.attributes.get(place, {})
    return "".join(f' {name}="{_escaped(value)}"' for name, value in given.items())


def _escaped(text: str) -> str:
    for sign, reference in _REFERENCES.items():
        text = text.replace(sign, reference)
    return text


def _texts(column: Column) -> Any:
    """Write a column as XML text, null where it is absent or empty; only what needs it is escaped."""
    if not column.texts:
        numbers = pc.cast(column.array, pa.int8()) if pa.types.is_boolean(column.array.type) else column.array
        return pc.cast(numbers, pa.string())
    texts = column.array
    if not column.shortest:
        texts = pc.if_else(pc.equal(texts, ""), None, texts)
    for sign, reference in _REFERENCES.items():
        if sign.encode() in column.signs:
            texts = pc.replace_substring(texts, sign, reference)
    return texts


def _render(element: _Element, columns: Mapping[str, Column], rows: int) -> list[Part] | Any | None:
    """Write an element for every row: the parts to join where every row has it, else an array, null where one has not.

    None stands for an element that no row has anything for.
    """
    heads = [
        _whole([f' {name}="', _texts(columns[source]), '"'])
        for name, source in element.attributes.items()
        if source in columns
    ]
    inner = []
    if element.text is not None and element.text in columns:
        inner.append(_whole([_texts(columns[element.text])]))
    inner += [child for below in element.children.values() if (child := _render(below, columns, rows)) is not None]
    if not heads and not inner:
        return None
    start, end = f"<{element.tag}{element.fixed}", f"</{element.tag}>"
    given = [*heads, *inner]
    parts = [start, *_flat(heads), *([">", *_flat(inner), end] if inner else ["/>"])]
    if any(isinstance(part, list) for part in given):
        return parts
    if len(given) == 1:
        return where_all(parts)
    return pc.if_else(reduce(pc.or_, map(pc.is_valid, given)), joined(parts, rows), None)


def _whole(parts: list[Part]) -> list[Part] | Any:
    """Take parts together that are there or not as a whole: the list itself where every row has them."""
    return where_all(parts) if any(not isinstance(part, str) and part.null_count for part in parts) else parts


def _flat(given: Iterable[list[Part] | Any]) -> Iterator[Part]:
    for part in given:
        if isinstance(part, list):
            yield from part
        else:
            yield part


def _row_of(names: list[tuple[str, str]], waiting: Mapping[str, deque[int]]) -> tuple[int, str] | None:
    """Find the row a message speaks of, by `keyAlt`, or by `key` where that is the code."""
    for pair in names:
        for name in pair:
            key = name.strip()
            rows = waiting.get(key) if key else None
            if rows:
                # The last row stays: another message on it agrees, or makes it contradictory.
                row = rows[0] if len(rows) == 1 else rows.popleft()
                return row, pair[1]
    return None


def _outcome(kind: str, text: str, answers: Answers) -> tuple[RowStatus, Note | None]:
    if kind == "2":
        for words, status in (
            (answers.unchanged, RowStatus.UNCHANGED),
            (answers.updated, RowStatus.UPDATED),
            (answers.created, RowStatus.CREATED),
        ):
            if any(word in text for word in words):
                return status, None
        return RowStatus.CREATED, None
    if kind in {"0", "3"}:
        return RowStatus.REJECTED, Note(answers.business(text) or "refused", text, http_status=200)
    return RowStatus.IN_DOUBT, Note("unclear-answer", f"message of type {kind!r}: {text}", http_status=200)
