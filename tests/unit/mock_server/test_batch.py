"""$batch in process: change sets, atomicity, and an answer that others can read."""

import email
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mock_server.scenario import Scenario

BATCH = "/api/v1/1001/crm/$batch"
HEADERS = {"Content-Type": "multipart/mixed; boundary=bt"}


def operation(row: object, *, content_id: int, target: str = "/api/v1/1001/crm/Accounts", method: str = "POST") -> str:
    """Write one request of a change set."""
    body = row if isinstance(row, str) else json.dumps(row)
    return (
        "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {content_id}\r\n\r\n{method} {target} HTTP/1.1\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}"
    )


def batch(*parts: str | list[str]) -> bytes:
    """Write a batch: a list is a change set, a text stands alone."""
    lines: list[str] = []
    for part in parts:
        lines.append("--bt\r\n")
        if isinstance(part, str):
            lines.append(f"{part}\r\n")
        else:
            lines.append("Content-Type: multipart/mixed; boundary=cs\r\n\r\n")
            lines += [f"--cs\r\n{one}\r\n" for one in part]
            lines.append("--cs--\r\n")
    return "".join([*lines, "--bt--\r\n"]).encode()


def answers(reply: Any) -> list[Any]:
    """Let Python's `email` parser read a reply: (Content-ID, status, JSON) a part, lists for change sets."""
    whole: Any = email.message_from_bytes(
        b"Content-Type: " + reply.headers["content-type"].encode() + b"\r\n\r\n" + reply.content
    )
    assert whole.defects == []
    return [_read(part) for part in whole.get_payload()]


def _read(part: Any) -> Any:
    if part.is_multipart():
        return [_read(inner) for inner in part.get_payload()]
    head, _, body = part.get_payload(decode=True).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length"))
    content = body[:length]
    assert body[length:] in {b"", b"\r\n"}
    return part["Content-ID"], int(lines[0].split()[1]), json.loads(content) if content else None


@pytest.mark.parametrize("together", [True, False], ids=["one change set", "a change set a row"])
def test_rows_are_booked_and_answered_by_content_id(run: Any, client: Any, together: bool) -> None:
    """One change set, or one for each row; the answer has the shape of the request."""
    rows = [operation({"Code": str(n), "Name": f"Bäcker {n}"}, content_id=n) for n in range(5)]

    async def main() -> None:
        async with client() as http:
            reply = await http.post(
                BATCH, content=batch(*([rows] if together else [[row] for row in rows])), headers=HEADERS
            )
            assert reply.status_code == 202
            found = answers(reply)
            parts = found[0] if together else [part for (part,) in found]
            assert [(content_id, status, body["d"]["Code"].strip()) for content_id, status, body in parts] == [
                (str(n), 201, str(n)) for n in range(5)
            ]
            assert (await http.get("/_mock/audit?key=Name")).json()["companies"]["1001"]["distinct"] == 5

    run(main)


def test_a_change_set_is_all_or_nothing(run: Any, client: Any) -> None:
    """A bad row takes its change set with it, in one error part; the others do not mind."""
    good, bad = {"Name": "A"}, {"City": "no name"}

    async def main() -> None:
        async with client() as http:
            body = batch(
                [operation(good | {"Code": "1"}, content_id=1)],
                [operation(good | {"Code": "2"}, content_id=2), operation(bad, content_id=3)],
                [operation(good | {"Code": "4"}, content_id=4), operation(good | {"Code": "4"}, content_id=5)],
                [operation(good | {"Code": "6"}, content_id=6)],
            )
            found = answers(await http.post(BATCH, content=body, headers=HEADERS))
            assert [part[:2] if isinstance(part, tuple) else [one[:2] for one in part] for part in found] == [
                [("1", 201)], ("3", 400), ("5", 500), [("6", 201)],
            ]  # fmt: skip
            assert found[1][2]["error"]["message"]["value"] == "Mandatory: Name"
            assert (await http.get("/_mock/rows?company=1001")).json()["codes"] == ["1", "6"]

    run(main)


def test_reads_stand_outside_and_addresses_may_be_short(run: Any, client: Any) -> None:
    """Relative and absolute addresses, a read, an update, a delete, and a wrong company."""

    async def main() -> None:
        async with client() as http:
            made = (await http.post("/api/v1/1001/crm/Accounts", json={"Code": "1", "Name": "A"})).json()["d"]
            key = f"Accounts(guid'{made['ID']}')"
            read = "Content-Type: application/http\r\n\r\nGET Accounts?$top=5&$select=Name HTTP/1.1\r\n\r\n"
            body = batch(
                [operation({"Name": "B"}, content_id=1, target="http://mock/api/v1/1001/crm/Accounts")],
                [operation({"Name": "C"}, content_id=2, target=key, method="PUT")],
                read,
                [operation("", content_id=3, target=key, method="DELETE")],
                [operation({"Name": "D"}, content_id=4, target="/api/v1/1002/crm/Accounts")],
                operation({"Name": "E"}, content_id=5),
            )
            found = answers(await http.post(BATCH, content=body, headers=HEADERS))
            statuses = [part[1] if isinstance(part, tuple) else part[0][1] for part in found]
            assert statuses == [201, 204, 200, 204, 403, 400]
            assert [row["Name"] for row in found[2][2]["d"]] == ["C", "B"]

    run(main)


@pytest.mark.parametrize(
    ("mode", "shape", "booked"),
    [
        ("atomic-change-sets", [[201], 400, [201]], ["0", "5"]),
        ("half-applied", [[201], 400], ["0", "1"]),
        ("continue-on-error", [[201], [201, 400, 500, 201], [201]], ["0", "1", "4", "5"]),
    ],
)
def test_a_change_set_fails_as_the_scenario_says(
    run: Any, client: Any, mode: Any, shape: list[Any], booked: list[str]
) -> None:
    """All or nothing; half of it behind the same error part, and no answer for the rest; or row by row."""
    rows = [{"Name": "A", "Code": "1"}, {"City": "no name"}, {"Name": "A", "Code": "1"}, {"Name": "A", "Code": "4"}]
    middle = [operation(row, content_id=number) for number, row in enumerate(rows, start=1)]
    first, last = (operation({"Name": "A", "Code": code}, content_id=int(code) + 10) for code in ("0", "5"))

    async def main() -> None:
        async with client(Scenario(batch=mode)) as http:
            reply = await http.post(BATCH, content=batch([first], middle, [last]), headers=HEADERS)
            found = answers(reply)
            assert [part[1] if isinstance(part, tuple) else [one[1] for one in part] for part in found] == shape
            assert (await http.get("/_mock/rows?company=1001")).json()["codes"] == booked

    run(main)


def test_a_batch_of_another_service_books_its_own_entities(run: Any, client: Any) -> None:
    """Items under `logistics`, relative and absolute; a row changed twice in a change set is refused."""

    async def main() -> None:
        async with client() as http:
            rows = [{"Code": str(n), "Description": "d"} for n in range(2)]
            body = batch([operation(rows[0], content_id=1, target="Items"),
                          operation(rows[1], content_id=2, target="/api/v1/1001/logistics/Items")])  # fmt: skip
            reply = await http.post("/api/v1/1001/logistics/$batch", content=body, headers=HEADERS)
            (made,) = answers(reply)
            assert [(one[1], one[2]["d"]["Code"]) for one in made] == [(201, "0"), (201, "1")]
            key = f"Items(guid'{made[0][2]['d']['ID']}')"
            twice = batch([operation("", content_id=n, target=key, method="DELETE") for n in range(2)])
            reply = await http.post("/api/v1/1001/logistics/$batch", content=twice, headers=HEADERS)
            assert [part[1] for part in answers(reply)] == [400]
            assert (await http.get("/api/v1/1001/logistics/Items/$count")).text == "2"

    run(main)


@pytest.mark.parametrize(
    ("scenario", "status"), [(Scenario(batch="off"), 404), (Scenario(max_batch_parts=1), 400), (Scenario(), 202)]
)
def test_the_scenario_decides_what_a_batch_may_be(run: Any, client: Any, scenario: Scenario, status: int) -> None:
    """Off, or capped."""
    body = batch([operation({"Name": "A"}, content_id=n) for n in range(2)])

    async def main() -> None:
        async with client(scenario) as http:
            assert (await http.post(BATCH, content=body, headers=HEADERS)).status_code == status

    run(main)


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.integers(0, 400), insert=st.binary(max_size=30), prefix=st.sampled_from([b"", b"--bt\r\n", b"--bt\r\n\r\n"])
)
def test_no_bytes_make_the_server_fail(client: Any, virtual: Any, cut: int, insert: bytes, prefix: bytes) -> None:
    """A batch cut anywhere with anything in between: 202 or 400, never 500."""
    whole = batch([operation({"Name": "A", "Code": "1"}, content_id=1)], [operation({"Name": "B"}, content_id=2)])

    async def main() -> None:
        async with client() as http:
            for body in (whole[:cut] + insert + whole[cut:], whole[:cut] + insert, prefix + insert):
                answer = await http.post(BATCH, content=body, headers=HEADERS)
                assert answer.status_code in {202, 400}
            assert (await http.get("/_mock/stats")).json()["internal_errors"] == 0

    virtual(main)
