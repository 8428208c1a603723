"""What goes next in a company."""

from collections.abc import Iterator, Mapping

from saasload.doubt import MOST_ROUNDS, Doubts
from saasload.lane import Lane, Quiet
from saasload.model import Call, Company, Fragments, Note, Outcomes, Reply, RowStatus, all_rows
from saasload.order import KeyOrder
from saasload.profile import load_profile
from saasload.wire.lookup import LookUp
from saasload.wire.values import Plain

COMPANY = Company("1001")


def call_of(*rows: int) -> Call:
    """Make a call of rows."""
    return Call(COMPANY, Fragments(rows, [b"x"] * len(rows), [f"K{row}" for row in rows]), 1)


class FakeRows:
    """Three fresh calls, one of which is refused here."""

    def fresh(self) -> Iterator[Call | Outcomes]:
        """Give them."""
        return iter([call_of(1), all_rows([2], RowStatus.REJECTED), call_of(3)])

    def again(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        """Make one call of all."""
        return iter([call_of(*sorted(rows))])

    def sent(self, rows: set[int]) -> Mapping[int, tuple[str, Mapping[str, Plain]]]:
        """Tell their keys."""
        return {row: (f"K{row}", {"Code": f"K{row}"}) for row in sorted(rows)}

    def taken(self, keys: set[str]) -> set[str]:
        """Tell that none is taken."""
        return set()

    def replaced(self, rows: set[int]) -> set[int]:
        """Tell that none is replaced."""
        return set()


def make() -> Lane:
    """Make a lane whose doubts are looked up."""
    profile = load_profile("mock")
    entity = profile.entity("Account")
    assert entity.look_up is not None
    rows = FakeRows()
    look_up = LookUp(profile, entity, entity.look_up, ["Code"])
    return Lane(COMPANY, rows, Doubts(COMPANY, rows, "look-up", look_up))


def drained() -> Lane:
    """Make a lane whose fresh rows are gone."""
    lane = make()
    for _ in range(3):
        lane.next(0.0)
    return lane


def test_fresh_rows_go_in_their_order_and_then_nothing() -> None:
    """What is refused here comes in its place among them."""
    lane = make()

    items = [lane.next(0.0) for _ in range(4)]

    assert [tuple(item.rows) if isinstance(item, Call | Outcomes) else item for item in items] == [
        (1,),
        (2,),
        (3,),
        None,
    ]


def test_what_was_put_back_goes_first_and_in_its_order() -> None:
    """Halves of a call that was split stay in order, before what waited already."""
    lane = make()
    lane.put_back([call_of(8)])
    lane.put_back([call_of(6), call_of(7)])

    found = [lane.next(0.0) for _ in range(4)]

    assert [tuple(item.rows) for item in found if isinstance(item, Call)] == [(6,), (7,), (8,), (1,)]


def test_rows_in_doubt_wait_for_fresh_ones_and_for_quiet() -> None:
    """First what is fresh, then silence until the platform can no longer be storing, then the question."""
    lane = make()
    lane.doubts.add([5], 100.0)

    assert isinstance(lane.next(100.0), Call)
    lane.next(100.0)
    lane.next(100.0)
    quiet = lane.next(100.0)
    assert isinstance(quiet, Quiet)
    assert quiet.until == 130.0
    asked = lane.next(130.0)
    assert isinstance(asked, Call)
    assert (asked.question, list(asked.rows)) == (True, [5])
    assert lane.next(130.0) is None


def test_rows_that_are_not_there_are_sent_though_others_must_wait() -> None:
    """The wait is for questions; an answer that is in is acted upon."""
    lane = drained()
    lane.doubts.add([5], 0.0)
    asked = lane.next(30.0)
    assert isinstance(asked, Call)
    lane.doubts.add([6], 31.0)
    lane.doubts.answered(asked, Reply(200, {}, b'{"d": []}'))

    again = lane.next(32.0)

    assert isinstance(again, Call)
    assert (again.question, list(again.rows)) == (False, [5])
    assert isinstance(lane.next(32.0), Quiet)


def test_a_lane_without_doubts_ends() -> None:
    """And goes on when there are some later."""
    lane = drained()
    assert lane.next(0.0) is None

    lane.doubts.add([5], 0.0)

    assert isinstance(lane.next(0.0), Quiet)


def ordered() -> Lane:
    """Make a lane of an upload, with row 0 in doubt and a call of rows 4 and 5 put back, of which 4 has its key."""
    profile = load_profile("mock")
    entity = profile.entity("Account")
    assert entity.look_up is not None
    look_up = LookUp(profile, entity, entity.look_up, ["Code"])
    rows = FakeRows()
    lane = Lane(COMPANY, rows, Doubts(COMPANY, rows, "resend", look_up), KeyOrder(0, one_by_one=True))
    lane.lost([0], 0.0)
    lane.put_back([Call(COMPANY, Fragments([4, 5], [b"x", b"x"], ["K0", "K5"]), 2)])
    return lane


def rows_of(item: object) -> list[int]:
    """List the rows of what a lane gave."""
    assert isinstance(item, Call | Outcomes)
    return list(item.rows)


def test_rows_that_wait_for_an_older_one_go_after_it() -> None:
    """Last of all; the others do not wait for them."""
    lane = ordered()

    assert [rows_of(lane.next(0.0)) for _ in range(4)] == [[5], [1], [2], [3]]
    assert isinstance(lane.next(0.0), Quiet)
    again = lane.next(30.0)
    assert isinstance(again, Call)
    assert rows_of(again) == [0]
    assert lane.next(30.0) is None
    lane.answered(again, all_rows([0], RowStatus.CREATED))
    assert rows_of(lane.next(30.0)) == [4]
    assert lane.next(30.0) is None


def test_rows_that_waited_for_one_that_was_given_up_go_when_it_can_no_longer_be_stored() -> None:
    """It would else be stored after them."""
    lane = ordered()
    for _ in range(4):
        lane.next(0.0)
    for number in range(1, MOST_ROUNDS + 1):
        again = lane.next(30.0 * number)
        assert isinstance(again, Call)
        lane.answered(again, all_rows([0], RowStatus.IN_DOUBT, Note("late")))
        lane.lost([0], 30.0 * number)

    quiet = lane.next(91.0)

    assert isinstance(quiet, Quiet)
    assert quiet.until == 120.0
    assert rows_of(lane.next(120.0)) == [4]
