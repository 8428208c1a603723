"""Cutting fragments into calls."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from saasload.model import Call, Company, Fragments, Outcomes, RowStatus, all_rows
from saasload.wire.cut import cut, shrink, split

COMPANY = Company("1001")

chunks = st.lists(st.lists(st.integers(0, 30), max_size=12), max_size=6)
limits = st.tuples(st.integers(1, 6), st.integers(5, 60), st.integers(0, 4))


def stream_of(sizes: list[list[int]]) -> list[Fragments]:
    """Make chunks of fragments with the given sizes, rows numbered through."""
    numbers = itertools.count(1)
    made = []
    for chunk in sizes:
        rows = [next(numbers) for _ in chunk]
        bodies = [bytes([row % 256]) * size for row, size in zip(rows, chunk, strict=True)]
        made.append(Fragments(rows, bodies, [f"K{row}" for row in rows]))
    return made


def greedy(sizes: list[int], max_rows: int, room: int) -> list[list[int]]:
    """Fill each call until the next row does not fit: in a fixed order no other way needs fewer."""
    filled: list[list[int]] = []
    used = 0
    for row, size in enumerate(sizes, 1):
        if size > room:
            continue
        if filled and len(filled[-1]) < max_rows and used + size <= room:
            filled[-1].append(row)
            used += size
        else:
            filled.append([row])
            used = size
    return filled


@given(chunks, limits)
def test_cut_makes_the_calls_of_the_greedy_reference(sizes: list[list[int]], limit: tuple[int, int, int]) -> None:
    """All rows in order, the fewest calls, within both limits, whatever the chunks they come in."""
    max_rows, max_bytes, overhead = limit
    stream = stream_of(sizes)
    items = list(cut(stream, COMPANY, max_rows=max_rows, max_bytes=max_bytes, overhead=overhead))
    calls = [item for item in items if isinstance(item, Call)]

    flat = [size for chunk in sizes for size in chunk]
    assert [list(call.rows) for call in calls] == greedy(flat, max_rows, max_bytes - overhead)
    bodies = {row: body for chunk in stream for row, body in zip(chunk.rows, chunk.bodies, strict=True)}
    for call in calls:
        assert list(call.fragments.bodies) == [bodies[row] for row in call.rows]
        assert list(call.fragments.keys) == [f"K{row}" for row in call.rows]
        assert call.size == overhead + sum(map(len, call.fragments.bodies)) <= max_bytes
        assert (call.company, call.attempt) == (COMPANY, 1)


@given(chunks, limits)
def test_cut_rejects_oversized_rows_and_nothing_else(sizes: list[list[int]], limit: tuple[int, int, int]) -> None:
    """A row that no call can hold is refused with a reason; every row is in one call or in one refusal."""
    max_rows, max_bytes, overhead = limit
    items = list(cut(stream_of(sizes), COMPANY, max_rows=max_rows, max_bytes=max_bytes, overhead=overhead))
    refused = [item for item in items if isinstance(item, Outcomes)]

    flat = [size for chunk in sizes for size in chunk]
    room = max_bytes - overhead
    assert [row for item in refused for row in item.rows] == [row for row, size in enumerate(flat, 1) if size > room]
    for item in refused:
        assert set(item.statuses) == {RowStatus.REJECTED}
        assert {item.notes[row].reason for row in item.rows} == {"too-large"}


def test_cut_lets_outcomes_pass() -> None:
    """Rows refused before are neither lost nor sent."""
    before = all_rows([7], RowStatus.REJECTED)
    items = list(cut([before, *stream_of([[3]])], COMPANY, max_rows=5, max_bytes=50, overhead=0))

    assert items[0] is before
    assert isinstance(items[1], Call)


def test_cut_reads_no_further_than_it_must() -> None:
    """A full call leaves before the next chunk is asked for."""
    asked = []

    def stream() -> itertools.chain[Fragments]:
        def one(number: int) -> list[Fragments]:
            asked.append(number)
            return stream_of([[1, 1, 1]])

        return itertools.chain.from_iterable(one(number) for number in range(3))

    calls = cut(stream(), COMPANY, max_rows=3, max_bytes=50, overhead=0)
    next(calls)

    assert asked == [0]


@given(st.integers(2, 9), st.integers(0, 9))
def test_split_halves_a_call_without_losing_a_row(count: int, overhead: int) -> None:
    """Both halves together are the call, in its order, each with its own exact size."""
    (call,) = cut(stream_of([[3] * count]), COMPANY, max_rows=count, max_bytes=100, overhead=overhead)
    assert isinstance(call, Call)
    left, right = split(call, overhead)

    assert [*left.rows, *right.rows] == list(call.rows)
    assert [*left.fragments.bodies, *right.fragments.bodies] == list(call.fragments.bodies)
    assert [*left.fragments.keys, *right.fragments.keys] == list(call.fragments.keys)
    assert abs(len(left.rows) - len(right.rows)) <= 1
    assert left.size + right.size == call.size + overhead


@given(st.sets(st.integers(1, 6), min_size=1), st.integers(0, 9))
def test_shrink_keeps_some_rows_as_the_next_attempt(kept: set[int], overhead: int) -> None:
    """The rest of a call stays in its order, encoded as it was."""
    (call,) = cut(stream_of([[1, 2, 3, 4, 5, 6]]), COMPANY, max_rows=6, max_bytes=100, overhead=overhead)
    assert isinstance(call, Call)
    rest = shrink(call, kept, overhead)

    assert list(rest.rows) == sorted(kept)
    assert list(rest.fragments.keys) == [f"K{row}" for row in sorted(kept)]
    assert [len(body) for body in rest.fragments.bodies] == sorted(kept)
    assert rest.size == overhead + sum(kept)
    assert rest.attempt == call.attempt + 1
