"""XML uploads in process: upsert, messages, and what is refused."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mock_server.scenario import Cost, LatencySpec, Scenario

UPLOAD = "/docs/XMLUpload.aspx?Topic=Accounts&_Division_=1001"
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="x.xsd"'


def document(*accounts: str) -> bytes:
    """Write an upload."""
    return f'<?xml version="1.0" encoding="utf-8"?><Root {XSI}><Accounts>{"".join(accounts)}</Accounts></Root>'.encode()


def messages(content: bytes) -> list[tuple[str, str, str]]:
    """Read type, code and text of each message."""
    root = etree.fromstring(content)
    return [
        (str(message.get("type")), str(data.get("keyAlt")), str(message.findtext("Description")))
        for message in root.findall("Messages/Message")
        for data in message.findall("Topic/Data")
    ]


def test_records_are_created_updated_or_left_alone(run: Any, client: Any) -> None:
    """Upsert by code; what an update does not name stays."""
    first = (
        '<Account code="1" status="C"><Name>A &amp; Zn</Name><Address type="VIS"><City>Delft</City>'
        '<Country code="NL"/></Address></Account>'
    )
    second = '<Account code="2"><Name>B</Name></Account>'
    update = '<Account code="1"><Phone>12</Phone></Account>'

    async def main() -> None:
        async with client() as http:
            reply = await http.post(UPLOAD, content=document(first, second))
            assert reply.status_code == 200
            assert messages(reply.content) == [("2", "1", "Created"), ("2", "2", "Created")]

            again = document(first, second, update, update)
            assert [text for _, _, text in messages((await http.post(UPLOAD, content=again)).content)] == [
                "Unchanged", "Unchanged", "Updated", "Unchanged",
            ]  # fmt: skip
            row = (await http.get(f"/api/v1/1001/crm/Accounts?$filter=Code eq '{'1':>18}'")).json()["d"]["results"][0]
            assert (row["Name"], row["City"], row["Country"], row["Phone"], row["Status"]) == (
                "A & Zn",
                "Delft",
                "NL ",
                "12",
                "C",
            )

    run(main)


def test_a_row_that_came_by_json_is_unchanged_when_it_comes_by_xml(run: Any, client: Any) -> None:
    """Both ways lead to the same fields."""
    row = {"Code": "1", "Name": "A", "Country": "NL", "IsSales": True, "CreditLineSales": 10.5,
           "StartDate": "2026-01-31T00:00:00", "Postcode": "1234"}  # fmt: skip
    account = (
        '<Account code="1"><Name>A</Name><IsSales>1</IsSales><Address type="VIS"><PostalCode>1234</PostalCode>'
        '<Country code="NL"/></Address><CreditLine><Sales>10.50</Sales></CreditLine><StartDate>2026-01-31</StartDate>'
        "</Account>"
    )

    async def main() -> None:
        async with client() as http:
            await http.post("/api/v1/1001/crm/Accounts", json=row)
            assert messages((await http.post(UPLOAD, content=document(account))).content) == [("2", "1", "Unchanged")]

    run(main)


def test_a_bad_record_stops_no_other(run: Any, client: Any) -> None:
    """Errors are messages of type 0, in the order of the document."""
    accounts = (
        '<Account code="1"><Name>A</Name></Account>',
        '<Account code="2"><City/></Account>',
        f'<Account code="3"><Name>{"n" * 51}</Name></Account>',
        f'<Account code="{"4" * 19}"><Name>D</Name></Account>',
        '<Account code="5&quot;&lt;"><Name>E</Name></Account>',
        "<Account><Name>F</Name></Account>",
        f'<Account code="7"><Name>G</Name><Address><City>{"c" * 31}</City></Address></Account>',
        '<Account ID="{00000000-0000-4000-8000-000000000000}" code="8"><Name>H</Name></Account>',
        '<Account code="9"/>',
    )

    async def main() -> None:
        async with client() as http:
            reply = await http.post(UPLOAD, content=document(*accounts))
            assert messages(reply.content) == [
                ("2", "1", "Created"),
                ("0", "2", "Mandatory: Name"),
                ("0", "3", "Too long: Name (maximum 50)"),
                ("0", "4" * 19, "Too long: Code (maximum 18)"),
                ("2", '5"<', "Created"),
                ("2", "2", "Created"),
                ("0", "7", "Too long: City (maximum 30)"),
                ("0", "8", "Not found: ID"),
                ("0", "9", "Mandatory: Name"),
            ]
            assert etree.fromstring(reply.content).tag == "Root"

    run(main)


@pytest.mark.parametrize(
    ("content", "query", "status"),
    [
        (b"", "", 400),
        (b"<Root><Accounts>", "", 400),
        (b"<Root/>", "", 400),
        (b'<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/passwd">]><Root><Accounts/></Root>', "", 400),
        ("<!DOCTYPE r><Root><Accounts/></Root>".encode("utf-16"), "", 400),
        (document(*['<Account code="1"><Name>A</Name></Account>'] * 11), "", 413),
        (document(), "", 200),
        (document(), "?Topic=Items&_Division_=1001", 400),
        (document(), "?Topic=Accounts&_Division=1001", 400),
        (document(), "?Topic=Accounts&_Division_=99", 403),
    ],
)  # fmt: skip
def test_what_is_no_upload_is_refused(run: Any, client: Any, content: bytes, query: str, status: int) -> None:
    """No document type, no entity, no other topic, no more rows than allowed, no other company."""

    async def main() -> None:
        async with client(Scenario(max_rows_per_upload=10)) as http:
            answer = await http.post(f"/docs/XMLUpload.aspx{query}" if query else UPLOAD, content=content)
            assert answer.status_code == status

    run(main)


@pytest.mark.parametrize(
    "between", ["", "<!-- </Account> -->", "<![CDATA[</Account>]]>", "<Other><Account/></Other>", "\n"]
)
def test_records_are_kept_as_they_are_whatever_stands_between(run: Any, client: Any, between: str) -> None:
    """Comments, CDATA and look-alikes do not shift a record into its neighbour."""
    accounts = [f'<Account\tcode="{n}"><Name>N{n}</Name><Note>{between}</Note></Account>{between}' for n in range(3)]

    async def main() -> None:
        async with client() as http:
            for _ in range(2):
                reply = await http.post(UPLOAD, content=document(*accounts))
                assert [code for _, code, _ in messages(reply.content)] == ["0", "1", "2"]
            names = (await http.get("/api/v1/1001/crm/Accounts?$select=Name&$top=9")).json()["d"]
            assert [row["Name"] for row in names] == ["N0", "N1", "N2"]

    run(main)


def test_unchanged_rows_cost_less_time(virtual: Any, client: Any) -> None:
    """What is new is known before the call is served."""
    spec = LatencySpec(xml=Cost(call_s=1.0, row_s=1.0, unchanged_row_s=0.25))
    body = document('<Account code="1"><Name>A</Name></Account>', '<Account code="2"><Name>B</Name></Account>')

    async def main() -> list[float]:
        async with client(Scenario(latency=spec)) as http:
            for _ in range(2):
                await http.post(UPLOAD, content=body)
            lines = (await http.get("/_mock/calls")).text.splitlines()
            return [round(float(line.rpartition(":")[2].rstrip("}")), 3) for line in lines]

    assert virtual(main) == [3.0, 1.5]


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.integers(0, 250),
    insert=st.one_of(st.binary(max_size=20), st.text("<>/&'\"=AcountNme ", max_size=20).map(str.encode)),
)
def test_no_bytes_make_the_server_fail(client: Any, virtual: Any, cut: int, insert: bytes) -> None:
    """A document cut anywhere with anything in between: 200 or 400, never 500."""
    whole = document('<Account code="1"><Name>A</Name></Account>', '<Account code="2"><Name>B</Name></Account>')

    async def main() -> None:
        async with client() as http:
            for body in (whole[:cut] + insert + whole[cut:], whole[:cut] + insert, insert):
                for _ in range(2):
                    assert (await http.post(UPLOAD, content=body)).status_code in {200, 400}
            await http.get("/api/v1/1001/crm/Accounts")
            assert (await http.get("/_mock/stats")).json()["internal_errors"] == 0

    virtual(main)
