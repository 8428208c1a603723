"""Give every row of a call exactly one outcome, whatever was heard."""

from saasload.model import Call, Note, Outcomes, RowStatus

SILENT = Note("silent", "the answer does not speak of this row")


def reconcile(call: Call, heard: Outcomes) -> Outcomes:
    """Put what was heard in the order of the call's rows, once each; silence is in doubt.

    A row that the answer speaks of twice with different outcomes is in doubt as well.
    """
    if heard.rows == call.rows:
        return heard
    statuses: dict[int, RowStatus] = {}
    ids: dict[int, str] = {}
    notes = dict(heard.notes)
    for row, status, identity in zip(heard.rows, heard.statuses, heard.ids, strict=True):
        if statuses.setdefault(row, status) is not status:
            statuses[row] = RowStatus.IN_DOUBT
            notes[row] = Note("contradiction", "the answer speaks of this row twice, differently")
        ids.setdefault(row, identity)
    for row in call.rows:
        if row not in statuses:
            notes[row] = SILENT
    return Outcomes(
        call.rows,
        [statuses.get(row, RowStatus.IN_DOUBT) for row in call.rows],
        [ids.get(row, "") for row in call.rows],
        {row: notes[row] for row in call.rows if row in notes},
        heard.retry_after,
    )
