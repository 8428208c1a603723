"""The ledger: what each company has booked."""

import hashlib
import heapq
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import orjson

from mock_server.entities import ACCOUNT, Entity
from mock_server.rows import Fields, read_row

_GUID_CHARS = 36

Entry = tuple[int, str, int, str, bytes, int]
"""A change to keep: company, set, number, code, row (empty when deleted), number of its parent (-1 = none)."""


class Book:
    """One company's things of one kind.

    A row is the bytes it came in, its code beside it; numbers run from 0 and the guid tells the number, so
    neither needs a table of its own. A deleted row is empty bytes.
    """

    __slots__ = ("_prefix", "changed", "changes", "codes", "company", "entity", "identity", "index", "lines", "live",
                 "log", "next_codes", "parents", "path", "rows", "surplus")  # fmt: skip

    def __init__(self, company: int, entity: Entity = ACCOUNT, *, seed: int, log: list[Entry] | None = None) -> None:
        """Start empty; the seed decides the guids, changes are appended to the log."""
        digest = hashlib.blake2b(f"{seed}:{company}:{entity.set}".encode(), digest_size=8).hexdigest()
        self._prefix = f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{company % 4096:03x}-"
        self.company = company
        self.entity = entity
        self.path = f"/api/v1/{company}/{entity.service}/{entity.set}"
        self.identity = f'","type":"{entity.type_name}"}},"{entity.key}":"'
        self.log = log
        self.index: dict[str, int] = {}
        self.codes: list[str] = []
        self.rows: list[bytes] = []
        self.changes = array("Q")
        self.changed: dict[int, int] = {}
        self.surplus: Counter[str] = Counter()
        self.live = 0
        self.next_codes: dict[str, int] = {}
        self.lines: dict[int, list[int]] = {}
        self.parents = array("q")

    def guid(self, number: int) -> str:
        """Return the id of a row."""
        return f"{self._prefix}{number:012x}"

    def number(self, guid: str) -> int | None:
        """Return the row of an id, None where there is none."""
        if len(guid) != _GUID_CHARS or not guid.lower().startswith(self._prefix):
            return None
        try:
            number = int(guid[24:], 16)
        except ValueError:
            return None
        return number if 0 <= number < len(self.rows) and self.rows[number] else None

    def add(self, code: str, row: bytes) -> int:
        """Book a row and return its number; a code booked before is booked twice."""
        number = len(self.rows)
        if self.index.setdefault(code, number) != number:
            self.surplus[code] += 1
        self.codes.append(code)
        self.rows.append(row)
        self.live += 1
        if self.log is not None:
            self.log.append((self.company, self.entity.set, number, code, row, -1))
        return number

    def add_line(self, row: bytes, parent: int) -> int:
        """Book a row that belongs to one of another book."""
        number = self.add(self.free_code(), row)
        self.parents.extend([-1] * (number - len(self.parents)) + [parent])
        self.lines.setdefault(parent, []).append(number)
        if self.log is not None:
            self.log[-1] = (*self.log[-1][:5], parent)
        return number

    def restore(self, code: str, row: bytes, parent: int) -> None:
        """Book a row as it was kept, a deleted one included."""
        number = len(self.rows)
        if parent >= 0:
            self.parents.extend([-1] * (number - len(self.parents)) + [parent])
            self.lines.setdefault(parent, []).append(number)
        log, self.log = self.log, None
        if row:
            self.add(code, row)
        else:
            self.codes.append(code)
            self.rows.append(b"")
        self.log = log

    def lines_of(self, parent: int) -> list[int]:
        """Return the rows that belong to one of another book."""
        return [number for number in self.lines.get(parent, ()) if self.rows[number]]

    def free_code(self, prefix: str = "") -> str:
        """Return a prefix with the next number that is not a code yet."""
        number = self.next_codes.get(prefix, 1)
        while f"{prefix}{number}" in self.index:
            number += 1
        self.next_codes[prefix] = number
        return f"{prefix}{number}"

    def fields(self, number: int) -> Fields:
        """Return a row's fields, without what makes up its code."""
        return read_row(self.entity, self.rows[number])

    def change(self, number: int, fields: Fields) -> None:
        """Replace a row's fields."""
        self.rows[number] = orjson.dumps(fields)
        self.changes.append(len(self.rows))
        self.changed[number] = len(self.rows) + len(self.changes)
        if self.log is not None:
            parent = self.parents[number] if number < len(self.parents) else -1
            self.log.append((self.company, self.entity.set, number, self.codes[number], self.rows[number], parent))

    def delete(self, number: int) -> None:
        """Take a row away."""
        code = self.codes[number]
        self.rows[number] = b""
        self.live -= 1
        if self.log is not None:
            self.log.append((self.company, self.entity.set, number, code, b"", -1))
        if self.surplus.get(code):
            self.surplus[code] -= 1
            if self.index[code] == number:
                twins = (n for n, other in enumerate(self.codes) if other == code and self.rows[n])
                self.index[code] = next(twins)
        else:
            del self.index[code]
            self.surplus.pop(code, None)

    def numbers(self) -> Iterable[int]:
        """Yield the numbers of the rows that are there."""
        return (number for number, row in enumerate(self.rows) if row)

    def since(self, version: int, rows: int) -> list[int]:
        """Return the next rows that were booked or changed after a version, in the order of that."""
        if not self.changed:
            after = (number for number in range(version, len(self.rows)) if self.rows[number])
            return list(islice(after, rows))
        after = (number for number in self.numbers() if self.version(number) > version)
        return heapq.nsmallest(rows, after, key=self.version)

    def version(self, number: int) -> int:
        """Return how many rows had been booked and changes made when a row was last touched, itself included.

        It is known from the number of a row and the number of rows at each change: rows themselves need not keep it.
        """
        return self.changed.get(number) or number + 1 + bisect_right(self.changes, number)

    def audit(self, key: str) -> dict[str, int]:
        """Count rows, distinct values of a field, and values that occur more than once."""
        if self.entity.code == (key,):
            twice = sum(1 for extra in self.surplus.values() if extra > 0)
            return {"rows": self.live, "distinct": len(self.index), "twice": twice}
        counts = Counter(repr(self.whole(number).get(key)) for number in self.numbers())
        return {"rows": self.live, "distinct": len(counts), "twice": sum(1 for n in counts.values() if n > 1)}

    def whole(self, number: int) -> Fields:
        """Return a row's fields, with its defaults, its code, its id and its company."""
        entity = self.entity
        fields: Fields = {**entity.defaults, **self.fields(number), **self.code_fields(number)}
        fields[entity.key] = self.guid(number)
        fields["Division"] = self.company
        return fields

    def code_fields(self, number: int) -> Fields:
        """Return the fields that a row's code stands for."""
        entity, code = self.entity, self.codes[number]
        if not entity.code:
            return {}
        values = code.rsplit("/", len(entity.code) - 1)
        found: Fields = {}
        for name, value in zip(entity.code, values, strict=True):
            found[name] = value.rjust(entity.code_width) if entity.fields[name].kind == "text" else int(value)
        return found


class Ledger:
    """Every company's books, and what will be booked later though nobody waits for it."""

    def __init__(self, *, seed: int, log: list[Entry] | None = None) -> None:
        """Start empty; changes are appended to the log."""
        self._seed = seed
        self._log = log
        self._late: list[tuple[float, int, Callable[[], object]]] = []
        self._late_count = 0
        self._books: dict[str, dict[int, Book]] = {ACCOUNT.set: {}}

    def book(self, company: int, entity: Entity = ACCOUNT) -> Book:
        """Return a company's book of an entity, opening it at first use."""
        books = self._books.get(entity.set)
        if books is None:
            books = self._books[entity.set] = {}
        book = books.get(company)
        if book is None:
            book = books[company] = Book(company, entity, seed=self._seed, log=self._log)
        return book

    def books(self, entity: Entity = ACCOUNT) -> dict[int, Book]:
        """Return the books of an entity by company."""
        return self._books.get(entity.set, {})

    def every(self) -> Iterator[Book]:
        """Yield every book."""
        for books in self._books.values():
            yield from books.values()

    def later(self, due_s: float, commit: Callable[[], object]) -> None:
        """Commit at a mock time: nobody can look in between, so it is done when somebody next looks."""
        self._late_count += 1
        heapq.heappush(self._late, (due_s, self._late_count, commit))

    def settle(self, now_s: float) -> None:
        """Commit what is due."""
        while self._late and self._late[0][0] <= now_s:
            heapq.heappop(self._late)[2]()
