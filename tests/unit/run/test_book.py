"""Counts always add up, and a row is settled once."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import anyio
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saasload.errors import RunFolderError
from saasload.model import Call, Company, Fragments, Note, Outcomes, RowStatus, Trip, all_rows
from saasload.run.book import Book, Times
from saasload.run.journal import FILE, Journal, create_journal

A, B = Company("1001"), Company("1002")
CREATED, REJECTED, NOT_ATTEMPTED, IN_DOUBT = (
    RowStatus.CREATED,
    RowStatus.REJECTED,
    RowStatus.NOT_ATTEMPTED,
    RowStatus.IN_DOUBT,
)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Give an empty journal."""
    with closing(create_journal(tmp_path, {})) as made:
        yield made


def make_book(journal: Journal, rows: int = 10) -> Book:
    """Make a book of two companies with five rows each."""
    companies = {A: rows // 2, B: rows // 2}
    book = Book(journal, rows=rows, companies=companies, times=Times("batch", 1_790_000_000.0, threads=False))
    book.replay()
    return book


def call_of(rows: list[int], company: Company = A, *, question: bool = False) -> Call:
    """Make a call of some rows."""
    fragments = Fragments(rows, [b"x"] * len(rows), [f"K{row}" for row in rows])
    return Call(company, fragments, len(rows), question=question)


def play(book: Book, call: Call, outcomes: Outcomes | None, *, answered: bool = True) -> None:
    """Send a call and settle it, or not."""

    async def main() -> None:
        number = await book.sending(call, 1.0)
        if answered:
            book.settled(number, Trip(call, 1.0, 0.5, 200, ""), outcomes)
        await book.flush()

    anyio.run(main, backend="trio")


def adds_up(book: Book) -> bool:
    """Compare the counts with what each row has."""
    counted = {status: count for status, count in book.counts.items() if count}
    found = {RowStatus(code): book.statuses.count(code) for code in set(book.statuses[1:]) if code}
    by_company: dict[RowStatus, int] = {}
    for company in book.companies.values():
        for status, count in company.outcomes.items():
            by_company[status] = by_company.get(status, 0) + count
    return counted == found == {status: count for status, count in by_company.items() if count}


@pytest.mark.parametrize("after", [CREATED, RowStatus.UPDATED, REJECTED, IN_DOUBT, NOT_ATTEMPTED])
def test_a_row_in_doubt_may_become_anything(after: RowStatus, journal: Journal) -> None:
    """What is known later takes the place of the doubt, its note included."""
    book = make_book(journal)
    play(book, call_of([1]), all_rows([1], IN_DOUBT, Note("late")))

    play(book, call_of([1]), all_rows([1], after, None if after.accepted else Note("later")))

    assert book.statuses[1] == (0 if after is NOT_ATTEMPTED else after)
    assert adds_up(book)
    assert book.notes.get(1) != Note("late")
    assert adds_up(make_book(journal))


@pytest.mark.parametrize("before", [CREATED, RowStatus.UPDATED, RowStatus.UNCHANGED, REJECTED])
@pytest.mark.parametrize("after", [CREATED, REJECTED, IN_DOUBT, NOT_ATTEMPTED])
def test_a_row_that_is_settled_twice_is_a_fault_of_ours(before: RowStatus, after: RowStatus, journal: Journal) -> None:
    """Said at once, by number."""
    book = make_book(journal)
    play(book, call_of([3]), all_rows([3], before, Note("x") if before is REJECTED else None))

    with pytest.raises(AssertionError, match="row 3 is settled twice"):
        play(book, call_of([3]), all_rows([3], after, Note("y")))


STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True),
        st.sampled_from((A, B)),
        st.lists(st.sampled_from((CREATED, REJECTED, IN_DOUBT, NOT_ATTEMPTED)), min_size=4, max_size=4),
        st.sampled_from(("answered", "answered", "nothing", "crash")),
    ),
    max_size=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_counts_add_up_and_another_process_finds_the_same(
    steps: list[tuple[list[int], Company, list[RowStatus], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After any calls the counts are those of the rows, and a replay of the journal gives the same book."""
    folder = tmp_path_factory.mktemp("book")
    with closing(create_journal(folder, {})) as journal:
        book = make_book(journal)
        for rows, company, statuses, end in steps:
            free = [row if company == A else row + 5 for row in rows]
            free = [row for row in free if book.statuses[row] in {0, IN_DOUBT}]
            if not free:
                continue
            given_ = statuses[: len(free)]
            notes = {row: Note("why") for row, status in zip(free, given_, strict=True) if status is not CREATED}
            ids = [f"id{row}" if status is CREATED else "" for row, status in zip(free, given_, strict=True)]
            outcomes = None if end == "nothing" else Outcomes(free, given_, ids, notes)
            play(book, call_of(free, company), outcomes, answered=end != "crash")
            if end == "crash":
                book = make_book(journal)
        assert adds_up(book)
        again = make_book(journal)

        assert (again.statuses, again.counts + book.counts, again.calls) == (
            book.statuses, book.counts + book.counts, journal.last_call(),
        )  # fmt: skip
        assert {row for row in again.notes if again.statuses[row]} == {row for row in book.notes if book.statuses[row]}
        again.write_tables(folder)

    accepted = pq.read_table(folder / "accepted.parquet").to_pylist()
    assert sorted(row["row"] for row in accepted) == [n for n, code in enumerate(again.statuses) if code == CREATED]
    assert all(row["id"] == f"id{row['row']}" for row in accepted)


def test_a_look_up_that_was_never_answered_changes_nothing(journal: Journal) -> None:
    """A question that a crash cut off says nothing about its rows: they were in doubt, or are accepted by now."""
    book = make_book(journal)
    play(book, call_of([1]), all_rows([1], IN_DOUBT, Note("late")))
    play(book, call_of([1], question=True), None, answered=False)

    again = make_book(journal)

    assert again.statuses[1] == IN_DOUBT
    assert again.notes[1] == Note("late")


def test_a_question_need_not_be_durable_before_it_leaves(journal: Journal) -> None:
    """It changes nothing at the target, so it waits for no disk."""
    book = make_book(journal)

    async def main() -> None:
        await book.sending(call_of([1], question=True), 1.0)

    anyio.run(main, backend="trio")

    assert journal.last_call() == 0
    book.close()
    assert journal.last_call() == 1


def test_a_call_that_never_left_is_not_taken_for_lost(journal: Journal) -> None:
    """Cancelled between its record and its departure: the next process knows that it was not sent."""
    book = make_book(journal)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(book.sending, call_of([1]), 1.0)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    anyio.run(main, backend="trio")
    book.close()

    assert make_book(journal).statuses[1] == 0


def test_doubts_that_a_person_denies_are_unsent_again(journal: Journal) -> None:
    """Their rows have no outcome and no note; others keep theirs."""
    book = make_book(journal)
    play(book, call_of([1, 2]), Outcomes([1, 2], [IN_DOUBT, CREATED], ["", "x"], {1: Note("late")}))

    book.forget_doubts()

    assert (book.statuses[1], book.statuses[2], book.notes) == (0, CREATED, {})
    assert adds_up(book)


def test_the_first_reason_to_close_counts(journal: Journal) -> None:
    """A company's own reason goes before that of the whole run."""
    book = make_book(journal)
    book.closed(None, Note("interrupted"))
    book.closed(A, Note("company-closed"))
    book.closed(A, Note("later"))

    assert book.why_unsent(A) == Note("company-closed")
    assert book.why_unsent(B) == Note("interrupted")
    assert make_book(journal).why_unsent(A) == Note("not-reached")


def test_what_no_process_of_ours_can_have_written_is_damage(journal: Journal, tmp_path: Path) -> None:
    """A row beyond the source, a status that is none, a note that cannot be read: one sentence with the file."""
    for table, change, back in (
        ("settled", "outcome = 9", "outcome = 4"),
        ("sent", "row = 99", "row = 1"),
        ("settled", "notes = '{'", ""),
        ("settled", "notes = '{\"1\": [1, 2, 3, 4, 5, 6]}'", ""),
    ):
        book = make_book(journal)
        if not journal.last_call():
            play(book, call_of([1]), all_rows([1], REJECTED, Note("refused")))
        journal._connection.execute(f"update {table} set {change}")  # noqa: S608 our own words

        with pytest.raises(RunFolderError, match=rf"{FILE}: damaged"):
            make_book(journal)
        journal._connection.execute(f"update {table} set {back or 'notes = null'}")  # noqa: S608


@pytest.mark.parametrize("between", [None, "other", "same"])
def test_calls_of_one_row_are_taken_over_whether_some_are_heard_of_twice_or_not(
    between: str | None, journal: Journal
) -> None:
    """A book that is read again counts as the one that was written, in one go or call by call."""
    book = make_book(journal)
    play(book, call_of([1]), all_rows([1], CREATED))
    play(book, call_of([6], B), all_rows([6], RowStatus.UPDATED))
    if between is not None:
        play(book, call_of([2]), all_rows([2], IN_DOUBT))
        play(book, call_of([2] if between == "same" else [3]), all_rows([2 if between == "same" else 3], CREATED))

    again = make_book(journal)

    assert (again.statuses, +again.counts, again.calls) == (book.statuses, +book.counts, book.calls)
    assert {name: +count.outcomes for name, count in again.companies.items()} == {
        name: +count.outcomes for name, count in book.companies.items()
    }
    assert adds_up(again)
