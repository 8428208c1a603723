"""Bytes written and replies read, a folder a wire format, a folder a case.

`requests/CASE` holds `input.json` (rows, and what differs from the profile) with the `call-N.http` it becomes and the
rows refused on the way; `replies/CASE` holds `call.json` (rows and keys), the reply as `reply.headers.json` and
`reply.body`, and what is to be done with the call in `expected.json`.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from saasload.model import ROW_COLUMN, Call, Company, Fragments, Outcomes, Reply, Request
from saasload.profile import EntitySpec, Mode, PlatformProfile, load_profile
from saasload.verdict import Again, CloseCompany, Drop, Settle, Split, StopRun, Verdict, on_reply
from saasload.wire import FORMATS, wire_format
from saasload.wire.cut import cut
from saasload.wire.render import render

HERE = Path(__file__).parent
COMPANY = Company("1001")


def cases(kind: str) -> list[Any]:
    """List the case folders of all formats."""
    found = sorted(path for mode in FORMATS for path in (HERE / mode / kind).iterdir() if path.is_dir())
    return [pytest.param(path, id=f"{path.parent.parent.name}-{path.name}") for path in found]


def load(path: Path) -> Any:
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def profile_of(given: Any) -> tuple[PlatformProfile, EntitySpec]:
    """Take the mock's profile, with what a case changes in it."""
    profile = load_profile("mock")
    entity = profile.entity("Account")
    profile = profile.model_copy(update={"json_decimal": given.get("json_decimal", "string")})
    assert entity.batch is not None
    batch = entity.batch.model_copy(update={"change_set": given.get("change_set", "row")})
    return profile, entity.model_copy(update={"batch": batch})


def column(values: list[Any], digits: list[int] | None) -> Any:
    """Make a source column; `digits` are precision and scale of a decimal one."""
    made = pa.array(values, pa.string() if digits else None)
    return made.cast(pa.decimal128(*digits)) if digits else made


def on_the_wire(request: Request) -> bytes:
    """Write a request as it looks without a connection's own headers."""
    head = [f"{request.method} {request.path}", *(f"{name}: {value}" for name, value in request.headers.items())]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + request.body


def told(outcomes: Outcomes) -> list[dict[str, Any]]:
    """List outcomes as plain data, without what is not there."""
    found = []
    for row, status, identity in zip(outcomes.rows, outcomes.statuses, outcomes.ids, strict=True):
        note = outcomes.notes.get(row)
        entry = {"row": row, "status": status.name, "id": identity}
        if note is not None:
            entry |= {"reason": note.reason, "message": note.message, "field": note.field, "http": note.http_status}
        found.append({name: value for name, value in entry.items() if value})
    return found


def done(verdict: Verdict) -> dict[str, Any]:
    """Say what is to be done, as plain data."""
    what = type(verdict).__name__
    match verdict:
        case Settle(outcomes):
            wait = {"retry_after": outcomes.retry_after} if outcomes.retry_after is not None else {}
            return {"do": what, "outcomes": told(outcomes), **wait}
        case Again(note, asked, _):
            return {"do": what, "reason": note.reason, "message": note.message, "retry_after": asked}
        case Split(note) | CloseCompany(note) | Drop(note):
            return {"do": what, "reason": note.reason, "message": note.message}
        case StopRun(note, reason):
            return {"do": what, "reason": note.reason, "message": reason}


@pytest.mark.parametrize("folder", cases("requests"))
def test_rows_become_these_bytes(
    folder: Path, same_bytes: Callable[[Path, bytes], None], same_json: Callable[[Path, Any], None]
) -> None:
    """Path, headers and body of every call, and the rows that are refused before."""
    given = load(folder / "input.json")
    mode: Mode = folder.parent.parent.name  # type: ignore[assignment]
    profile, entity = profile_of(given)
    wire = wire_format(profile, entity, mode)
    names = list(given["columns"])
    arrays = {name: column(given["columns"][name], given.get("decimals", {}).get(name)) for name in names}
    count = len(arrays[names[0]])
    batch = pa.record_batch({ROW_COLUMN: pa.array(range(1, count + 1)), **arrays})
    fields = {name: (name, entity.fields[name]) for name in entity.fields if name in names}
    stream = render([batch], COMPANY, wire, fields, key=entity.key, chunk_rows=250)
    items = list(cut(stream, COMPANY, max_rows=wire.max_rows, max_bytes=wire.max_bytes, overhead=wire.overhead))

    calls = [item for item in items if isinstance(item, Call)]
    for number, call in enumerate(calls, 1):
        same_bytes(folder / f"call-{number}.http", on_the_wire(wire.request(call)))
    assert {path.name for path in folder.glob("*.http")} == {
        f"call-{number}.http" for number in range(1, len(calls) + 1)
    }
    same_json(folder / "refused.json", [entry for item in items if isinstance(item, Outcomes) for entry in told(item)])


@pytest.mark.parametrize("folder", cases("replies"))
def test_a_reply_becomes_this_verdict(folder: Path, same_json: Callable[[Path, Any], None]) -> None:
    """What is to be done, and what became of every row."""
    given = load(folder / "call.json")
    mode: Mode = folder.parent.parent.name  # type: ignore[assignment]
    profile, entity = profile_of(given)
    rows, keys = given["rows"], given["keys"]
    call = Call(COMPANY, Fragments(rows, [b"x"] * len(rows), keys), len(rows))
    head = load(folder / "reply.headers.json")
    headers = {name.lower(): value for name, value in head["headers"].items()}
    reply = Reply(head["status"], headers, (folder / "reply.body").read_bytes())

    same_json(
        folder / "expected.json", done(on_reply(call, reply, wire_format(profile, entity, mode), profile.answers))
    )


def test_the_batch_of_c11_is_loaded_in_every_variant() -> None:
    """What its case log asks for: three rows loaded, none failed, none sent again."""
    variants = sorted((HERE / "batch" / "replies").glob("c11-*"))

    assert len(variants) == 6
    for folder in variants:
        expected = load(folder / "expected.json")
        assert [entry["status"] for entry in expected["outcomes"]] == ["CREATED"] * 3


def test_the_batch_of_c09_sends_two_rows_again_after_the_longest_wait() -> None:
    """What its case log asks for."""
    expected = load(HERE / "batch" / "replies" / "c09-throttled-parts" / "expected.json")
    again = [entry["row"] for entry in expected["outcomes"] if entry["status"] == "NOT_ATTEMPTED"]

    assert (again, expected["retry_after"]) == ([2, 4], "5")
