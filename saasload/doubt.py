"""Rows of one company whose answer was lost: what makes their fate known again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from saasload.model import Call, Company, Fragments, Note, Outcomes, Reply, RowStatus, all_rows
from saasload.order import replaced_note
from saasload.profile import DoubtRule
from saasload.wire.lookup import Entity, LookUp
from saasload.wire.values import Plain

MOST_ROUNDS = 3
"""So often is a row asked after or sent again before it is left to a person."""

DUPLICATE = "duplicate"
"""The reason by which a profile names "a row with this key is there already"."""


class Rows(Protocol):
    """Where a company's rows come from, as often as they are needed."""

    def fresh(self) -> Iterator[Call | Outcomes]:
        """Cut the rows that have no outcome yet into calls."""
        ...

    def again(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        """Cut some of the rows into calls once more."""
        ...

    def sent(self, rows: set[int]) -> Mapping[int, tuple[str, Mapping[str, Plain]]]:
        """Tell what is sent for some rows: the natural key, and the value of each field."""
        ...

    def taken(self, keys: set[str]) -> set[str]:
        """Tell which of the keys accepted rows of the company have."""
        ...

    def replaced(self, rows: set[int]) -> set[int]:
        """Tell which of the rows have the key of a newer row that was accepted."""
        ...


class Doubts:
    """Settles rows in doubt by the profile's rule.

    `look-up`: once the platform can no longer be storing them, ask for them by key; what is there as it was sent
    is ours, what is not there is sent again, what is there otherwise stays in doubt; what is there for another row of
    the source, which has the same key, is refused as the platform would. `resend`: the call creates or
    updates by key, so it is sent once more, unless a newer row with the key is there already: what the older one
    wrote, if it did, is written over, and must stay so. Without a rule nothing is done.
    """

    def __init__(self, company: Company, rows: Rows, rule: DoubtRule | None, look_up: LookUp | None) -> None:
        """Begin without any."""
        self._company = company
        self._rows = rows
        self._look_up = look_up
        self._rule = None if rule == "look-up" and look_up is None else rule
        self._waiting: set[int] = set()
        self._rounds: dict[int, int] = {}
        self._sent: dict[int, Mapping[str, Plain]] = {}
        self._missing: set[int] = set()
        self._taken: set[str] = set()
        self.quiet_until = 0.0

    @property
    def open(self) -> bool:
        """Whether rows wait to be settled, or to be sent again since they are not there."""
        return bool(self._waiting or self._missing)

    def ready_at(self) -> float:
        """Say from when on `calls` may be made."""
        return 0.0 if self._missing else self.quiet_until

    def add(self, rows: Sequence[int], now: float) -> set[int]:
        """Take rows; return those that something can be done about."""
        if self._rule is None:
            return set()
        taken = {row for row in rows if self._rounds.get(row, 0) < MOST_ROUNDS}
        self._waiting |= taken
        quiet_s = self._look_up.quiet_s if self._look_up is not None else 0.0
        self.quiet_until = max(self.quiet_until, now + quiet_s)
        return taken

    def calls(self) -> Iterator[Call | Outcomes]:
        """Make the calls that settle the rows that wait: questions, or the rows once more."""
        # Answers come in while other questions are on the wire, so what they say is taken up apart from the questions.
        if self._missing:
            missing, self._missing = self._missing, set()
            return self._rows.again(missing)
        rows, self._waiting = self._waiting, set()
        for row in rows:
            self._rounds[row] = self._rounds.get(row, 0) + 1
        return self._resent(rows) if self._rule == "resend" else self._asked(rows)

    def answered(self, call: Call, reply: Reply) -> Outcomes:
        """Read a question's answer; a row that is not there may be sent again. Raises DecodeError."""
        assert self._look_up is not None  # noqa: S101 without it no question was asked
        found = self._look_up.read(reply)
        statuses, ids, notes = [], [], {}
        for row, key in zip(call.rows, call.fragments.keys, strict=True):
            status, identity, note = self._judge(row, key, found.get(key.strip(), []))
            statuses.append(status)
            ids.append(identity)
            if note is not None:
                notes[row] = note
        return Outcomes(call.rows, statuses, ids, notes)

    def reconsider(self, outcomes: Outcomes) -> Outcomes:
        """See "there already" about a row that was in doubt for what it is: it may be our own."""
        if not self._rounds or not any(note.reason == DUPLICATE for note in outcomes.notes.values()):
            return outcomes
        statuses, notes = list(outcomes.statuses), dict(outcomes.notes)
        for place, row in enumerate(outcomes.rows):
            noted = notes.get(row)
            # one without an HTTP status is our own finding, and final
            ours = row in self._rounds and noted is not None and noted.reason == DUPLICATE and noted.http_status
            if ours and statuses[place] is RowStatus.REJECTED:
                statuses[place] = RowStatus.IN_DOUBT
                notes[row] = Note("there-already", notes[row].message, notes[row].field, notes[row].http_status)
        return Outcomes(outcomes.rows, statuses, outcomes.ids, notes, outcomes.retry_after)

    def _resent(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        replaced = self._rows.replaced(rows)
        if replaced:
            yield all_rows(sorted(replaced), RowStatus.UNCHANGED, replaced_note())
        if rows - replaced:
            yield from self._rows.again(rows - replaced)

    def _asked(self, rows: set[int]) -> Iterator[Call | Outcomes]:
        assert self._look_up is not None  # noqa: S101 the rule is to look up
        sent = self._rows.sent(rows)
        self._sent.update({row: values for row, (key, values) in sent.items() if key})
        asked = [(row, key) for row, (key, _) in sent.items() if key]
        self._taken |= self._rows.taken({key for _, key in asked})
        while asked:
            count = self._look_up.fit(self._company, [key for _, key in asked])
            some, asked = asked[:count], asked[count:]
            fragments = Fragments([row for row, _ in some], [b""] * count, [key for _, key in some])
            yield Call(self._company, fragments, 0, question=True)

    def _judge(self, row: int, key: str, there: Sequence[Entity]) -> tuple[RowStatus, str, Note | None]:
        sent = self._sent.pop(row, {})
        if not there:
            self._missing.add(row)
            return RowStatus.NOT_ATTEMPTED, "", None
        if len(there) > 1:
            return RowStatus.IN_DOUBT, "", Note("found-twice", f"{len(there)} rows with this key are there")
        if key in self._taken:
            return RowStatus.REJECTED, "", Note(DUPLICATE, "another row of the source has this key, and is there")
        assert self._look_up is not None  # noqa: S101 the rule is to look up
        differing = self._look_up.differing(sent, there[0])
        if differing:
            message = f"a row with this key is there, with another {', '.join(differing)}"
            return RowStatus.IN_DOUBT, "", Note("found-different", message, differing[0])
        self._taken.add(key)
        return RowStatus.CREATED, str(there[0].get("ID", "")), None
