"""Other topics than accounts, downloads, and messages of every type."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mock_server.entities import TOPICS
from mock_server.scenario import FaultSpec, Scenario

API = "/api/v1/1001"


def upload(topic: str, *, company: int = 1001, params: str = "") -> str:
    """Return the address of an upload."""
    return f"/docs/XMLUpload.aspx?Topic={topic}&_Division_={company}{params}"


def document(topic: str, *records: str) -> bytes:
    """Write an upload."""
    return f"<Root><{topic}>{''.join(records)}</{topic}></Root>".encode()


def messages(content: bytes) -> list[tuple[str, str]]:
    """Read type and text of each message."""
    found = etree.fromstring(content).findall("Messages/Message")
    return [(str(one.get("type")), str(one.findtext("Description"))) for one in found]


def transaction(entry: str, *amounts: str, account: str = "8000") -> str:
    """Write a journal entry."""
    lines = "".join(
        f'<GLTransactionLine line="{place}"><GLAccount code="{account}"/><Amount><Value>{amount}</Value></Amount>'
        "</GLTransactionLine>"
        for place, amount in enumerate(amounts, start=1)
    )
    return f'<GLTransaction{entry}><Journal code="90"/>{lines}</GLTransaction>'


async def book(http: Any) -> None:
    """Book what invoices and entries refer to, by XML."""
    rows = {
        "Accounts": '<Account code="1"><Name>A</Name></Account>',
        "Items": '<Item code="S"><Description>Seeds</Description><Sales><Unit code="kg"/></Sales></Item>',
        "GLAccounts": '<GLAccount code="8000" type="110"><Description>Revenue</Description></GLAccount>',
    }
    for topic, row in rows.items():
        assert messages((await http.post(upload(topic), content=document(topic, row))).content) == [("2", "Created")]


def test_items_and_ledger_accounts_are_upserted_by_code(run: Any, client: Any) -> None:
    """Created, unchanged, updated; a code is needed; REST sees the same fields."""

    async def main() -> None:
        async with client() as http:
            await book(http)
            rows = (
                '<Item code="S"><Description>Seeds</Description><Sales><Unit code="kg"/></Sales></Item>',
                '<Item code="S"><GrossWeight>2.50</GrossWeight></Item>',
                "<Item><Description>no code</Description></Item>",
                f'<Item code="T"><Description>{"d" * 61}</Description></Item>',
            )
            reply = await http.post(upload("Items"), content=document("Items", *rows))
            assert messages(reply.content) == [
                ("2", "Unchanged"), ("2", "Updated"), ("0", "Mandatory: Code"),
                ("0", "Too long: Description (maximum 60)"),
            ]  # fmt: skip
            item = (await http.get(f"{API}/logistics/Items?$top=1")).json()["d"][0]
            account = (await http.get(f"{API}/financial/GLAccounts?$top=1")).json()["d"][0]
            assert (item["Code"], item["Unit"], item["GrossWeight"]) == ("S", "kg      ", 2.5)
            assert (account["Code"], account["Type"]) == ("8000", 110)

    run(main)


def test_an_entry_number_is_booked_once(run: Any, client: Any) -> None:
    """Journal and entry number are a key; what does not balance or refers to nothing is an error."""

    async def main() -> None:
        async with client() as http:
            await book(http)
            rows = (
                transaction(' entry="18600001"', "10.10", "-10.10"),
                transaction(' entry="18600001"', "5", "-5"),
                transaction("", "5", "-4.99"),
                transaction("", "5", "-5", account="1"),
                transaction("", "5", "-5"),
            )
            reply = await http.post(upload("GLTransactions"), content=document("GLTransactions", *rows))
            assert messages(reply.content) == [
                ("2", "Created"),
                ("0", "Already exists - Entry number 18600001, Journal 90"),
                ("0", "Must balance: GeneralJournalEntryLines"),
                ("0", "Not found: GLAccount"),
                ("2", "Created"),
            ]
            lines = (await http.get(f"{API}/generaljournalentry/GeneralJournalEntryLines")).json()["d"]["results"]
            assert [line["AmountFC"] for line in lines] == [10.1, -10.1, 5.0, -5.0]

    run(main)


def test_invoices_are_never_idempotent(run: Any, client: Any) -> None:
    """The same order number makes a second invoice; dates are ignored, and a warning says so."""
    record = (
        '<Invoice ordernumber="5"><OrderedBy code="1"/><InvoiceDate>2026-01-31</InvoiceDate><YourRef>R</YourRef>'
        '<InvoiceLine><Item code="S"/><Quantity>2</Quantity></InvoiceLine></Invoice>'
    )

    async def main() -> None:
        async with client() as http:
            await book(http)
            for _ in range(2):
                reply = await http.post(upload("Invoices"), content=document("Invoices", record))
                assert messages(reply.content) == [("1", "Ignored: InvoiceDate"), ("2", "Created")]
            found = (await http.get("/_mock/audit?entity=SalesInvoices&key=YourRef")).json()["companies"]["1001"]
            assert found == {"rows": 2, "distinct": 1, "twice": 1}

    run(main)


@pytest.mark.parametrize(
    ("kind", "said", "booked"),
    [("xml-fatal", [("2", "Created"), ("3", "Fatal: the import was stopped")], 1), ("xml-no-data", None, 2)],
)
def test_a_fault_may_play_in_the_middle_of_an_upload(
    run: Any, client: Any, kind: Any, said: list[tuple[str, str]] | None, booked: int
) -> None:
    """A fatal message ends the run, and messages may come without the key of their record."""
    rows = [f'<Account code="{number}"><Name>A</Name></Account>' for number in (1, 2)]

    async def main() -> None:
        async with client(Scenario(faults=(FaultSpec(kind=kind, last=1),))) as http:
            reply = await http.post(upload("Accounts"), content=document("Accounts", *rows))
            assert messages(reply.content) == (said or [("2", "Created")] * 2)
            assert (b"<Data" in reply.content) is (kind == "xml-fatal")
            assert len((await http.get("/_mock/rows?company=1001")).json()["codes"]) == booked

    run(main)


def test_a_download_comes_in_pages_in_the_order_of_change(run: Any, client: Any) -> None:
    """250 items a page; what is changed comes again, at the end; each record has its id and its code."""
    address = "/docs/XMLDownload.aspx?Topic=Items&_Division_=1001"

    async def main() -> None:
        async with client() as http:
            rows = [f'<Item code="{number}"><Description>d</Description></Item>' for number in range(300)]
            await http.post(upload("Items"), content=document("Items", *rows))
            first = etree.fromstring((await http.get(address)).content)
            page = first.find("Topics/Topic")
            assert page is not None
            assert (page.get("count"), page.get("pagesize")) == ("250", "250")
            await http.post(upload("Items"), content=document("Items", '<Item code="7"><Barcode>9</Barcode></Item>'))
            rest = etree.fromstring((await http.get(f"{address}&TSPaging={page.get('ts_d')}")).content)
            codes = [item.get("code") for item in rest.findall("Items/Item")]
            assert codes == [*(str(number) for number in range(250, 300)), "7"]
            assert rest.findtext("Items/Item[@code='7']/Barcode") == "9"
            assert str(rest.find("Items/Item[1]").get("ID")).startswith("{")  # type: ignore[union-attr]
            one = etree.fromstring((await http.get(f"{address}&Params_Code=12")).content)
            assert [item.get("code") for item in one.findall("Items/Item")] == ["12"]
            assert (await http.get(f"{address}&TSPaging=x")).status_code == 400

    run(main)


def test_what_is_downloaded_can_be_uploaded(run: Any, client: Any) -> None:
    """A row that came by JSON leaves as XML and is unchanged when it comes back; entries bring their lines."""
    row = {"Code": "1", "Name": "A & Zn", "Country": "NL", "IsSales": True, "StartDate": "2026-01-31T00:00:00"}

    async def main() -> None:
        async with client() as http:
            await http.post(f"{API}/crm/Accounts", json=row)
            whole = (await http.get("/docs/XMLDownload.aspx?Topic=Accounts&_Division_=1001")).content
            assert messages((await http.post(upload("Accounts"), content=whole)).content) == [("2", "Unchanged")]
            await http.post("/_mock/reset")
            await book(http)
            entry = document("GLTransactions", transaction(' entry="7"', "1", "-1"))
            await http.post(upload("GLTransactions"), content=entry)
            copy = (await http.get("/docs/XMLDownload.aspx?Topic=GLTransactions&_Division_=1001")).content
            await http.post("/_mock/reset")
            await book(http)
            assert messages((await http.post(upload("GLTransactions"), content=copy)).content) == [("2", "Created")]

    run(main)


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    topic=st.sampled_from(sorted(TOPICS)),
    cut=st.integers(0, 250),
    insert=st.one_of(st.binary(max_size=12), st.text("<>/&'\"=AcountLine1- ", max_size=20).map(str.encode)),
)
def test_no_bytes_make_the_server_fail(client: Any, virtual: Any, topic: str, cut: int, insert: bytes) -> None:
    """A document cut anywhere with anything in between, and the download of what was made of it."""
    spec = TOPICS[topic].xml
    assert spec is not None
    line = f'<{spec.line}><GLAccount code="1"/><Item code="1"/></{spec.line}>' if spec.line else ""
    record = (
        f'<{spec.record} code="1" entry="1"><Name>A</Name><Description>A</Description><OrderedBy code="1"/>'
        f'<Journal code="9"/>{line}</{spec.record}>'
    )
    whole = document(topic, record)

    async def main() -> None:
        async with client(Scenario(check_references=False)) as http:
            for body in (whole, whole[:cut] + insert + whole[cut:], whole[:cut] + insert):
                assert (await http.post(upload(topic), content=body)).status_code in {200, 400}
            loaded = await http.get(f"/docs/XMLDownload.aspx?Topic={topic}&_Division_=1001")
            assert loaded.status_code == 200
            etree.fromstring(loaded.content)
            assert (await http.get("/_mock/stats")).json()["internal_errors"] == 0

    virtual(main)
