"""The ledger: what each company has booked."""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable

import orjson

from mock_server.rows import Fields, read_row

_GUID_CHARS = 36


class Book:
    """One company's accounts.

    A row is the bytes it came in, its code beside it; numbers run from 0 and the guid tells the number, so
    neither needs a table of its own. A deleted row is empty bytes.
    """

    __slots__ = ("_prefix", "codes", "company", "index", "live", "next_code", "rows", "surplus")

    def __init__(self, company: int, *, seed: int) -> None:
        """Start empty; the seed decides the guids."""
        digest = hashlib.blake2b(f"{seed}:{company}".encode(), digest_size=8).hexdigest()
        self._prefix = f"{digest[:8]}-{digest[8:12]}-4{digest[12:15]}-8{company % 4096:03x}-"
        self.company = company
        self.index: dict[str, int] = {}
        self.codes: list[str] = []
        self.rows: list[bytes] = []
        self.surplus: Counter[str] = Counter()
        self.live = 0
        self.next_code = 1

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
        return number if number < len(self.rows) and self.rows[number] else None

    def add(self, code: str, row: bytes) -> int:
        """Book a row and return its number; a code booked before is booked twice."""
        number = len(self.rows)
        if self.index.setdefault(code, number) != number:
            self.surplus[code] += 1
        self.codes.append(code)
        self.rows.append(row)
        self.live += 1
        return number

    def free_code(self) -> str:
        """Return the next number that is not a code yet."""
        while str(self.next_code) in self.index:
            self.next_code += 1
        return str(self.next_code)

    def fields(self, number: int) -> Fields:
        """Return a row's fields, without the code."""
        return read_row(self.rows[number])

    def change(self, number: int, fields: Fields) -> None:
        """Replace a row's fields."""
        self.rows[number] = orjson.dumps(fields)

    def delete(self, number: int) -> None:
        """Take a row away."""
        code = self.codes[number]
        self.rows[number] = b""
        self.live -= 1
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

    def audit(self, key: str) -> dict[str, int]:
        """Count rows, distinct values of a field, and values that occur more than once."""
        if key == "Code":
            twice = sum(1 for extra in self.surplus.values() if extra > 0)
            return {"rows": self.live, "distinct": len(self.index), "twice": twice}
        counts = Counter(repr(self.fields(number).get(key)) for number in self.numbers())
        return {"rows": self.live, "distinct": len(counts), "twice": sum(1 for n in counts.values() if n > 1)}


class Ledger:
    """Every company's book, and what will be booked later though nobody waits for it."""

    def __init__(self, *, seed: int) -> None:
        """Start empty."""
        self._seed = seed
        self._late: list[tuple[float, int, Callable[[], object]]] = []
        self._late_count = 0
        self.books: dict[int, Book] = {}

    def book(self, company: int) -> Book:
        """Return a company's book, opening it at first use."""
        book = self.books.get(company)
        if book is None:
            book = self.books[company] = Book(company, seed=self._seed)
        return book

    def later(self, due_s: float, commit: Callable[[], object]) -> None:
        """Commit at a mock time: nobody can look in between, so it is done when somebody next looks."""
        self._late_count += 1
        heapq.heappush(self._late, (due_s, self._late_count, commit))

    def settle(self, now_s: float) -> None:
        """Commit what is due."""
        while self._late and self._late[0][0] <= now_s:
            heapq.heappop(self._late)[2]()
