"""The ledger: guids, codes, duplicates and late commits."""

import tracemalloc

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mock_server.ledger import Book, Ledger


def test_a_guid_leads_back_to_its_row() -> None:
    """Ids are told from numbers, and only the company's own are known."""
    book, other = Book(1001, seed=7), Book(1002, seed=7)
    number = book.add("5", b'{"Name":"x"}')

    guid = book.guid(number)

    assert len(guid) == 36
    assert book.number(guid) == number
    assert book.number(guid.upper()) == number
    assert other.number(guid) is None
    assert book.number(book.guid(1)) is None
    assert book.number(guid[:-1] + "z") is None


def test_guids_are_the_same_in_each_run() -> None:
    """The seed decides, and another seed gives others."""
    assert Book(1001, seed=7).guid(3) == Book(1001, seed=7).guid(3)
    assert Book(1001, seed=7).guid(3) != Book(1001, seed=8).guid(3)


def test_a_row_booked_twice_is_seen() -> None:
    """The audit counts codes that stand more than once."""
    book = Book(1001, seed=7)
    for code in ("1", "2", "2", "2", "3"):
        book.add(code, b'{"Name":"same"}')

    assert book.audit("Code") == {"rows": 5, "distinct": 3, "twice": 1}
    assert book.audit("Name") == {"rows": 5, "distinct": 1, "twice": 1}


def test_a_deleted_row_is_gone_and_its_twin_stays() -> None:
    """Deleting one of two leaves the other to be found."""
    book = Book(1001, seed=7)
    first, second = book.add("2", b"{}"), book.add("2", b"{}")

    book.delete(first)

    assert book.index == {"2": second}
    assert book.audit("Code") == {"rows": 1, "distinct": 1, "twice": 0}
    book.delete(second)
    assert book.audit("Code") == {"rows": 0, "distinct": 0, "twice": 0}
    assert book.number(book.guid(second)) is None


def test_an_assigned_code_is_not_taken() -> None:
    """A code given by the server is the next free number."""
    book = Book(1001, seed=7)
    book.add("1", b"{}")
    book.add("2", b"{}")

    assert book.free_code() == "3"


def test_a_late_commit_happens_when_it_is_due() -> None:
    """Nothing before its time, and in the order of time."""
    ledger = Ledger(seed=7)
    done: list[str] = []
    ledger.later(5.0, lambda: done.append("b"))
    ledger.later(3.0, lambda: done.append("a"))

    ledger.settle(2.9)
    assert done == []
    ledger.settle(5.0)

    assert done == ["a", "b"]


@given(st.lists(st.tuples(st.sampled_from(["add", "delete"]), st.integers(0, 5)), max_size=60))
def test_the_counts_are_those_of_a_plain_list(steps: list[tuple[str, int]]) -> None:
    """Whatever is added and deleted, the audit says what a list would."""
    book, plain = Book(1, seed=1), dict[int, str]()
    for step, value in steps:
        if step == "add":
            plain[book.add(str(value), b"{}")] = str(value)
        elif plain:
            number = sorted(plain)[value % len(plain)]
            book.delete(number)
            del plain[number]

    codes = list(plain.values())

    twice = sum(1 for code in set(codes) if codes.count(code) > 1)
    assert book.audit("Code") == {"rows": len(codes), "distinct": len(set(codes)), "twice": twice}
    assert set(book.index) == set(codes)
    assert all(plain[number] == code for code, number in book.index.items())


def test_a_row_takes_little_memory() -> None:
    """A million rows of 343 bytes stay well below 1 GB."""
    book = Book(1001, seed=7)
    row = orjson.dumps({"Name": "n" * 330})
    tracemalloc.start()

    for number in range(5000):
        book.add(str(number), bytes(bytearray(row)))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert used / 5000 < 800
