"""Rows in doubt: what is asked, what an answer makes of them, and when it is left to a person."""

from collections.abc import Iterator, Mapping

import orjson
import pytest

from saasload.doubt import MOST_ROUNDS, Doubts
from saasload.errors import DecodeError
from saasload.model import Call, Company, Fragments, Note, Outcomes, Reply, RowStatus, all_rows
from saasload.profile import DoubtRule, load_profile
from saasload.wire.lookup import LookUp
from saasload.wire.values import Plain

COMPANY = Company("1001")
PROFILE = load_profile("mock")
ENTITY = PROFILE.entity("Account")
IN_DOUBT, NOT_ATTEMPTED, CREATED, REJECTED = (
    RowStatus.IN_DOUBT,
    RowStatus.NOT_ATTEMPTED,
    RowStatus.CREATED,
    RowStatus.REJECTED,
)


class FakeRows:
    """Rows whose key is K and their number, and whose name is their number; row 99 has no key."""

    def __init__(self) -> None:
        """Begin with nothing asked for."""
        self.resent: list[set[int]] = []
        self.accepted: set[str] = set()
        self.newer: set[int] = set()
        self.keys: dict[int, str] = {}

    def fresh(self) -> Iterator[Call | Outcomes]:
        """Have none."""
        return iter(())

    def again(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        """Make one call of them."""
        self.resent.append(rows)
        ordered = sorted(rows)
        return iter([Call(COMPANY, Fragments(ordered, [b"x"] * len(ordered), [f"K{row}" for row in ordered]), 1)])

    def sent(self, rows: set[int]) -> Mapping[int, tuple[str, Mapping[str, Plain]]]:
        """Tell what was sent."""
        keys = {row: self.keys.get(row, "" if row == 99 else f"K{row}") for row in sorted(rows)}
        return {row: (key, {"Code": key, "Name": f"N{key[1:]}"}) for row, key in keys.items()}

    def taken(self, keys: set[str]) -> set[str]:
        """Tell which keys accepted rows have."""
        return keys & self.accepted

    def replaced(self, rows: set[int]) -> set[int]:
        """Tell which rows a newer one has replaced."""
        return rows & self.newer


def make(rule: DoubtRule | None, *, look_up: bool = True) -> tuple[Doubts, FakeRows]:
    """Make doubts under a rule."""
    assert ENTITY.look_up is not None
    rows = FakeRows()
    asking = LookUp(PROFILE, ENTITY, ENTITY.look_up, ["Code", "Name"]) if look_up else None
    return Doubts(COMPANY, rows, rule, asking), rows


def reply(*rows: Mapping[str, object]) -> Reply:
    """Answer a question with rows that are there."""
    return Reply(200, {}, orjson.dumps({"d": {"results": rows}}))


def there(row: int, **changes: object) -> Mapping[str, object]:
    """Describe a row as it was sent, but for some fields."""
    return {"ID": f"id{row}", "Code": f"K{row}".rjust(18), "Name": f"N{row}", **changes}


def question(doubts: Doubts) -> Call:
    """Take the one question."""
    (call,) = doubts.calls()
    assert isinstance(call, Call)
    assert call.question
    return call


def test_without_a_rule_nothing_is_done() -> None:
    """The rows stay in doubt, and the driver is told that nobody looks after them."""
    for doubts, _ in (make(None), make("look-up", look_up=False)):
        assert doubts.add([1, 2], 10.0) == set()
        assert not doubts.open


def test_a_call_that_creates_or_updates_is_sent_once_more() -> None:
    """No question is asked."""
    doubts, rows = make("resend")
    assert doubts.add([1, 2], 10.0) == {1, 2}

    (call,) = doubts.calls()

    assert isinstance(call, Call)
    assert (list(call.rows), call.question, rows.resent) == ([1, 2], False, [{1, 2}])
    assert not doubts.open


def test_a_row_that_a_newer_one_has_replaced_is_not_sent_again() -> None:
    """The older values would come to stand over the newer ones; there is nothing more to do for it."""
    doubts, rows = make("resend")
    rows.newer = {1}
    doubts.add([1, 2], 10.0)

    done, call = doubts.calls()

    assert done == all_rows(
        [1], RowStatus.UNCHANGED, Note("replaced", "a newer row of the source has this key, and is there")
    )
    assert (list(call.rows), rows.resent) == ([2], [{2}])


def test_nothing_is_asked_before_the_platform_can_no_longer_be_storing() -> None:
    """Counted from the last answer that was lost."""
    doubts, _ = make("look-up")
    doubts.add([1], 10.0)
    doubts.add([2], 25.0)

    assert doubts.ready_at() == 25.0 + 30.0


def test_a_row_that_is_there_as_it_was_sent_is_ours() -> None:
    """With the target's id."""
    doubts, rows = make("look-up")
    doubts.add([1], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(1)))

    assert outcomes == Outcomes([1], [CREATED], ["id1"], {})
    assert not doubts.open
    assert rows.resent == []


def test_a_row_that_is_not_there_is_sent_again() -> None:
    """Once, at once, and only that one."""
    doubts, rows = make("look-up")
    doubts.add([1, 2], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(2)))

    assert list(outcomes.statuses) == [NOT_ATTEMPTED, CREATED]
    assert (doubts.open, doubts.ready_at()) == (True, 0.0)
    list(doubts.calls())
    assert (rows.resent, doubts.open) == ([{1}], False)


def test_a_row_that_is_there_otherwise_is_reported_and_not_counted_as_ours() -> None:
    """The field that differs is named; nothing is sent over it."""
    doubts, rows = make("look-up")
    doubts.add([1], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(1, Name="somebody else's")))

    assert list(outcomes.statuses) == [IN_DOUBT]
    assert outcomes.notes[1] == Note("found-different", "a row with this key is there, with another Name", "Name")
    assert (doubts.open, rows.resent) == (False, [])


def test_a_row_that_is_there_twice_is_reported() -> None:
    """One of them may be ours, and nobody can say which."""
    doubts, _ = make("look-up")
    doubts.add([1], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(1), there(1)))

    assert (list(outcomes.statuses), outcomes.notes[1].reason) == ([IN_DOUBT], "found-twice")


def test_a_row_that_is_there_for_another_row_of_the_source_is_refused() -> None:
    """Two rows with one key, of which the other was accepted: it is not counted twice, and not in doubt again."""
    doubts, rows = make("look-up")
    rows.accepted = {"K1"}
    doubts.add([1, 2], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(1), there(2)))

    assert list(outcomes.statuses) == [REJECTED, CREATED]
    assert outcomes.notes[1].reason == "duplicate"
    assert doubts.reconsider(outcomes) is outcomes or list(doubts.reconsider(outcomes).statuses) == [REJECTED, CREATED]


def test_two_rows_in_doubt_with_one_key_are_one_row_there() -> None:
    """The first is ours, the second is refused, as the platform would have done it."""
    doubts, rows = make("look-up")
    rows.keys = {1: "K1", 2: "K1"}
    doubts.add([1, 2], 0.0)

    outcomes = doubts.answered(question(doubts), reply(there(1)))

    assert list(outcomes.statuses) == [CREATED, REJECTED]


def test_an_answer_that_is_none_leaves_the_question_open() -> None:
    """It is asked again, and the rows are known as before."""
    doubts, _ = make("look-up")
    doubts.add([1], 0.0)
    call = question(doubts)

    with pytest.raises(DecodeError):
        doubts.answered(call, Reply(200, {}, b"<html>"))

    assert list(doubts.answered(call, reply(there(1))).statuses) == [CREATED]


def test_a_row_without_a_key_stays_in_doubt() -> None:
    """There is nothing to ask for."""
    doubts, rows = make("look-up")
    doubts.add([99], 0.0)

    assert list(doubts.calls()) == []
    assert (doubts.open, rows.resent) == (False, [])


def test_more_keys_than_a_request_holds_are_several_questions() -> None:
    """Each row in one of them, once."""
    doubts, _ = make("look-up")
    doubts.add(list(range(1, 96)), 0.0)

    calls = [call for call in doubts.calls() if isinstance(call, Call)]

    assert [len(call.rows) for call in calls] == [40, 40, 15]
    assert sorted(row for call in calls for row in call.rows) == list(range(1, 96))


def test_answers_that_come_in_while_other_questions_are_out_are_all_followed_up() -> None:
    """With two calls at a time in a company the last question may be answered after all have been taken."""
    doubts, rows = make("look-up")
    doubts.add(list(range(1, 81)), 0.0)
    first, second = (call for call in doubts.calls() if isinstance(call, Call))

    doubts.answered(second, reply())
    doubts.answered(first, reply(*(there(row) for row in range(2, 41))))

    assert doubts.open
    list(doubts.calls())
    assert rows.resent == [{1, *range(41, 81)}]


def test_it_is_left_to_a_person_after_some_rounds() -> None:
    """A row that gets lost each time it is sent does not go round for ever."""
    for rule in ("look-up", "resend"):
        doubts, _ = make(rule)
        for _ in range(MOST_ROUNDS):
            assert doubts.add([1], 0.0) == {1}
            list(doubts.calls())

        assert doubts.add([1, 2], 0.0) == {2}


def test_there_already_is_no_refusal_of_a_row_that_was_in_doubt() -> None:
    """It may be our own: it is looked up again. A row that was never in doubt is refused."""
    doubts, _ = make("look-up")
    doubts.add([1], 0.0)
    doubts.answered(question(doubts), reply())
    refused = Note("duplicate", "Data already exists", "Code", 500)

    outcomes = doubts.reconsider(all_rows([1, 2], REJECTED, refused))

    assert list(outcomes.statuses) == [IN_DOUBT, REJECTED]
    assert (outcomes.notes[1].reason, outcomes.notes[2].reason) == ("there-already", "duplicate")
    assert outcomes.notes[1].http_status == 500


def test_any_other_refusal_of_a_row_that_was_in_doubt_stands() -> None:
    """What it is refused for is what it is."""
    doubts, _ = make("look-up")
    doubts.add([1], 0.0)
    list(doubts.calls())
    outcomes = all_rows([1], REJECTED, Note("mandatory"))

    assert doubts.reconsider(outcomes) is outcomes
    fresh, _ = make("look-up")
    duplicate = all_rows([1], REJECTED, Note("duplicate"))
    assert fresh.reconsider(duplicate) is duplicate
