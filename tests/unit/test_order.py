"""Rows of one key keep the order of the source."""

from saasload.model import Call, Company, Fragments, Note, Outcomes, RowStatus, all_rows
from saasload.order import KeyOrder

COMPANY = Company("1001")
CREATED, IN_DOUBT, NOT_ATTEMPTED, REJECTED, UNCHANGED = (
    RowStatus.CREATED, RowStatus.IN_DOUBT, RowStatus.NOT_ATTEMPTED, RowStatus.REJECTED, RowStatus.UNCHANGED,
)  # fmt: skip


def call_of(**keys: int) -> Call:
    """Make a call of rows by their key; a second row of a key has a mark behind it."""
    rows = list(keys.values())
    return Call(COMPANY, Fragments(rows, [b"xx"] * len(rows), [f" {key[0]}" for key in keys]), 100 + 2 * len(rows))


def order(*, one_by_one: bool = True) -> KeyOrder:
    """Make an order for calls that weigh 100 bytes beside their rows."""
    return KeyOrder(100, one_by_one=one_by_one)


def rows_of(call: Call | None) -> list[int]:
    """List the rows of a call, if there is one."""
    return [] if call is None else list(call.rows)


def parted(keys: KeyOrder, call: Call) -> tuple[list[int], list[int]]:
    """Say which rows of a call may leave, and which wait."""
    leaving, held = keys.admit(call)
    return rows_of(leaving), rows_of(held)


def test_nothing_waits_where_nothing_is_unsettled() -> None:
    """The call leaves as it is, also with a key in it twice."""
    call = call_of(A=1, A_=2)

    assert order().admit(call) == (call, None)


def test_a_row_waits_for_an_older_one_of_its_key() -> None:
    """Also behind one that waits; other rows of its call leave, in a call that weighs what it holds."""
    keys = order()
    keys.unsettled([(1, "A")])

    leaving, held = keys.admit(call_of(A=5, B=6, A_=7))

    assert (rows_of(leaving), rows_of(held)) == ([6], [5, 7])
    assert leaving is not None
    assert (leaving.size, leaving.attempt) == (102, 1)
    assert parted(keys, call_of(A=8, C=9)) == ([9], [8])


def test_the_older_row_itself_does_not_wait() -> None:
    """It is what the others wait for."""
    keys = order()
    keys.unsettled([(1, "A"), (3, "A")])

    assert parted(keys, call_of(A=1, A_=3)) == ([1, 3], [])
    assert parted(keys, call_of(A=3)) == ([], [3])


def test_a_row_that_is_settled_lets_the_next_one_go() -> None:
    """Whatever became of it, but that it was not tried."""
    keys = order()
    keys.unsettled([(1, "A")])
    call = call_of(A=1)

    keys.settled(call, all_rows([1], NOT_ATTEMPTED))
    assert parted(keys, call_of(A=2)) == ([], [2])
    keys.settled(call, all_rows([1], REJECTED))
    assert parted(keys, call_of(A=2)) == ([2], [])


def test_a_row_that_needs_no_call_lets_the_next_one_go() -> None:
    """It was replaced, or cannot be sent any more."""
    keys = order()
    keys.unsettled([(1, "A"), (2, "B")])

    keys.dropped(all_rows([1], UNCHANGED))

    assert parted(keys, call_of(A=3, B=4)) == ([3], [4])


def test_what_is_on_the_wire_counts_where_calls_do_not_follow_each_other() -> None:
    """Two calls of a company at once could be carried out in any order."""
    keys = order(one_by_one=False)
    first = call_of(A=1, B=2)
    keys.admit(first)

    assert parted(keys, call_of(A=3, C=4)) == ([4], [3])
    keys.settled(first, all_rows([1, 2], CREATED))
    assert parted(keys, call_of(A=3)) == ([3], [])


def test_rows_without_a_key_wait_for_nobody() -> None:
    """They are no two rows of one key."""
    keys = order(one_by_one=False)
    blank = Call(COMPANY, Fragments([1], [b"x"], [" "]), 101)

    keys.admit(blank)

    assert keys.admit(Call(COMPANY, Fragments([2], [b"x"], [""]), 101))[1] is None


def test_a_row_that_a_newer_one_of_its_call_replaced_is_done() -> None:
    """Its answer is missing, but what it may have written is written over; one after the accepted row is not."""
    keys = order()
    silent = Note("silent")
    outcomes = Outcomes(
        [1, 2, 3, 4], [IN_DOUBT, CREATED, IN_DOUBT, NOT_ATTEMPTED], [""] * 4, dict.fromkeys([1, 3, 4], silent)
    )

    found = keys.settled(call_of(A=1, A_=2, A__=3, B=4), outcomes)

    assert list(found.statuses) == [UNCHANGED, CREATED, IN_DOUBT, NOT_ATTEMPTED]
    assert found.notes[1].reason == "replaced"
    assert found.notes[3] == silent


def test_a_newer_row_that_was_refused_replaces_nothing() -> None:
    """The older one is what the target should hold."""
    outcomes = Outcomes([1, 2], [IN_DOUBT, REJECTED], ["", ""], dict.fromkeys([1, 2], Note("x")))

    assert list(order().settled(call_of(A=1, A_=2), outcomes).statuses) == [IN_DOUBT, REJECTED]
