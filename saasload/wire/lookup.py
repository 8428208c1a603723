"""Read rows back by their natural key: the question, the answer, and whether what is there is what was sent."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from urllib.parse import quote

import orjson

from saasload.errors import DecodeError
from saasload.model import Company, Reply, Request
from saasload.profile import EntitySpec, FieldSpec, LookUpSpec, PlatformProfile
from saasload.wire.values import Plain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_V2_DATE = re.compile(r"/Date\((-?\d+)(?:[+-]\d+)?\)/")

Entity = Mapping[str, object]


class LookUp:
    """Asks for many keys at once, within what the platform's URLs hold, and compares what it finds."""

    def __init__(self, profile: PlatformProfile, entity: EntitySpec, spec: LookUpSpec, fields: Sequence[str]) -> None:
        """Ask for the fields that were sent, beside the key and the id."""
        self.max_keys = spec.max_keys
        self.quiet_s = spec.quiet_s
        self._spec = spec
        self._key = entity.key
        self._fields = {name: entity.fields[name] for name in fields}
        self._select = ",".join(dict.fromkeys(("ID", entity.key, *fields)))
        self._headers = {"Accept": "application/json", **profile.headers}

    def fit(self, company: Company, keys: Sequence[str]) -> int:
        """Count how many of the keys, from the first on, one request can ask for."""
        for count in range(min(len(keys), self.max_keys), 1, -1):
            if len(self.request(company, keys[:count]).path) <= self._spec.max_url_bytes:
                return count
        return min(len(keys), 1)

    def request(self, company: Company, keys: Sequence[str]) -> Request:
        """Ask for the rows with these keys: an `or` chain, each key as the platform pads it, encoded once."""
        terms = " or ".join(f"{self._key} eq {self._literal(key)}" for key in dict.fromkeys(keys))
        path = self._spec.path.replace("{company}", company)
        path = path.replace("{select}", self._select).replace("{filter}", quote(terms, safe="',()"))
        return Request("GET", path, self._headers)

    def read(self, reply: Reply) -> dict[str, list[Entity]]:
        """Sort what was found by key. Raises DecodeError for an answer that is not a whole collection."""
        try:
            data = orjson.loads(reply.body)["d"]
            rows = data["results"] if isinstance(data, dict) else data
            if isinstance(data, dict) and data.get("__next"):
                message = "the look-up's answer has more pages than one, so it may not tell all"
                raise DecodeError(message)
            found: dict[str, list[Entity]] = {}
            for row in rows:
                found.setdefault(str(row[self._key]).strip(), []).append(row)
        except (ValueError, KeyError, TypeError) as error:
            message = f"a look-up answered with HTTP {reply.status} and no collection: {reply.body[:60]!r}"
            raise DecodeError(message) from error
        return found

    def differing(self, sent: Mapping[str, Plain], there: Entity) -> list[str]:
        """Name the fields that are there with another value than was sent; what was not sent is not compared."""
        return [
            name
            for name, value in sent.items()
            if name in self._fields and value is not None and not _same(value, there.get(name), self._fields[name])
        ]

    def _literal(self, key: str) -> str:
        pad = self._fields[self._key].pad_left if self._key in self._fields else None
        text = key if pad is None else key.strip().rjust(pad)
        return "'" + text.replace("'", "''") + "'"


def _same(sent: Plain, there: object, spec: FieldSpec) -> bool:
    """Compare as the platform stores: text without its padding, numbers by value, dates by day."""
    if there is None:
        return sent == ""
    plain = _PLAIN[spec.type]
    return plain(str(sent)) == plain(str(there))


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _moment(text: str) -> str:
    """Write a stored moment as ISO 8601 without a zone; the platform's epoch milliseconds are wall time.

    >>> _moment("/Date(-500)/")
    '1969-12-31T23:59:59'
    """
    found = _V2_DATE.fullmatch(text)
    if found is None:
        return text[:19]
    try:
        return (_EPOCH + timedelta(milliseconds=int(found.group(1)))).strftime("%Y-%m-%dT%H:%M:%S")
    except OverflowError:
        return text


_PLAIN: Mapping[str, Callable[[str], object]] = {
    "text": str.strip,
    "integer": _number,
    "decimal": _number,
    "date": lambda text: _moment(text)[:10],
    "datetime": _moment,
    "bool": lambda text: text.lower() in {"true", "1"},
    "guid": str.lower,
}
