"""The other entities in process: contacts, items, ledger accounts, invoices and journal entries with their lines."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from mock_server.entities import ENTITIES, SETS
from mock_server.scenario import Scenario

API = "/api/v1/1001"
NOWHERE = "00000000-0000-4000-8000-000000000000"


async def book(http: Any) -> dict[str, str]:
    """Book what invoices and entries refer to; return the ids."""
    rows = {
        "crm/Accounts": {"Code": "1", "Name": "A"},
        "logistics/Items": {"Code": "SEED-1", "Description": "Seeds", "Unit": "stuk"},
        "financial/GLAccounts": {"Code": "8000", "Description": "Revenue", "Type": 110},
    }
    ids = {}
    for resource, row in rows.items():
        made = await http.post(f"{API}/{resource}", json=row)
        assert made.status_code == 201
        ids[resource.partition("/")[2]] = made.json()["d"]["ID"]
    return ids


def invoice(ids: dict[str, str], **fields: object) -> dict[str, object]:
    """Write an invoice with two lines."""
    lines = [{"Item": ids["Items"], "Quantity": number, "NetPrice": 2.5} for number in (1, 2)]
    return {"Journal": "70", "OrderedBy": ids["Accounts"], "SalesInvoiceLines": lines, **fields}


def entry(ids: dict[str, str], *amounts: float, **fields: object) -> dict[str, object]:
    """Write a journal entry with a line for each amount."""
    lines = [{"GLAccount": ids["GLAccounts"], "AmountFC": amount} for amount in amounts]
    return {"JournalCode": "90", "GeneralJournalEntryLines": lines, **fields}


def test_an_invoice_is_booked_with_its_lines(run: Any, client: Any) -> None:
    """Deep insert, deferred and expanded lines, a line's own address, and an end to all of it."""

    async def main() -> None:
        async with client() as http:
            ids = await book(http)
            made = await http.post(f"{API}/salesinvoice/SalesInvoices", json=invoice(ids, YourRef="R1"))
            assert made.status_code == 201
            assert made.json()["d"]["InvoiceNumber"] == 1
            address = f"{API}/salesinvoice/SalesInvoices(guid'{made.json()['d']['InvoiceID']}')"

            deferred = (await http.get(address)).json()["d"]
            assert (deferred["Status"], deferred["Type"], deferred["YourRef"]) == (20, 8020, "R1")
            assert deferred["SalesInvoiceLines"]["__deferred"]["uri"] == f"http://mock{address}/SalesInvoiceLines"
            followed = (await http.get(deferred["SalesInvoiceLines"]["__deferred"]["uri"])).json()["d"]["results"]
            expanded = (await http.get(f"{address}?$expand=SalesInvoiceLines")).json()["d"]["SalesInvoiceLines"]
            assert [line["LineNumber"] for line in followed] == [1, 2]
            assert expanded["results"] == followed

            line = f"{API}/salesinvoice/SalesInvoiceLines(guid'{followed[0]['ID']}')"
            assert (await http.put(line, json={"Quantity": 7})).status_code == 204
            assert (await http.get(line)).json()["d"]["Quantity"] == 7
            assert (await http.put(address, json={"SalesInvoiceLines": []})).status_code == 400

            assert (await http.delete(address)).status_code == 204
            assert (await http.get(line)).status_code == 404
            assert (await http.get(f"{API}/salesinvoice/SalesInvoiceLines/$count")).text == "0"

    run(main)


def test_an_entry_has_to_balance_and_its_number_is_its_journals_own(run: Any, client: Any) -> None:
    """Lines add up to zero; a number given twice is a 500, one not given is assigned; there is no PUT."""

    async def main() -> None:
        async with client() as http:
            ids = await book(http)
            address = f"{API}/generaljournalentry/GeneralJournalEntries"
            assert (await http.post(address, json=entry(ids, 10.0, -9.99))).status_code == 400
            first = await http.post(address, json=entry(ids, 0.1, 0.2, -0.3))
            assert (first.status_code, first.json()["d"]["EntryNumber"]) == (201, 1)
            named = await http.post(address, json=entry(ids, 1, -1, EntryNumber=77))
            again = await http.post(address, json=entry(ids, 1, -1, EntryNumber=77))
            other = await http.post(address, json=entry(ids, 1, -1, EntryNumber=77, JournalCode="91"))
            assert (named.status_code, again.status_code, other.status_code) == (201, 500, 201)
            assert "Entry number 77, Journal 90" in again.json()["error"]["message"]["value"]

            where = {"$filter": "JournalCode eq '90' and EntryNumber gt 1", "$expand": "GeneralJournalEntryLines"}
            found = (await http.get(address, params=where)).json()["d"]["results"]
            assert [(one["EntryNumber"], len(one["GeneralJournalEntryLines"]["results"])) for one in found] == [(77, 2)]
            one = f"{address}(guid'{found[0]['EntryID']}')"
            assert (await http.put(one, json={"Currency": "USD"})).status_code == 405
            line = {"EntryID": found[0]["EntryID"], "GLAccount": ids["GLAccounts"], "AmountFC": 5}
            assert (await http.post(f"{address[:-3]}yLines", json=line)).status_code == 400
            audit = (await http.get("/_mock/audit?entity=GeneralJournalEntries&key=JournalCode")).json()
            assert audit["companies"]["1001"] == {"rows": 3, "distinct": 2, "twice": 1}

    run(main)


@pytest.mark.parametrize(
    ("resource", "row", "status", "says"),
    [
        ("crm/Contacts", {"Account": "{Accounts}", "LastName": "B"}, 201, ""),
        ("crm/Contacts", {"Account": "{Accounts}"}, 400, "Mandatory: LastName"),
        ("crm/Contacts", {"LastName": "B"}, 400, "Mandatory: Account"),
        ("crm/Contacts", {"Account": NOWHERE, "LastName": "B"}, 400, "Not found: Account"),
        ("logistics/Items", {"Code": "X", "Description": "Y", "Unit": "kg"}, 201, ""),
        ("logistics/Items", {"Code": "SEED-1", "Description": "Y"}, 500, "Data already exists: Code"),
        ("logistics/Items", {"Description": "Y"}, 400, "Mandatory: Code"),
        ("logistics/Items", {"Code": "X", "Description": "d" * 61}, 400, "Too long: Description (maximum 60)"),
        ("logistics/Items", {"Code": "X", "Description": "Y", "IsMakeItem": 256}, 400, "Error processing"),
        ("financial/GLAccounts", {"Code": "4000", "Description": "Costs", "BalanceSide": "D"}, 201, ""),
        ("financial/GLAccounts", {"Code": "4000"}, 400, "Mandatory: Description"),
        ("salesinvoice/SalesInvoices", {"Journal": "70", "OrderedBy": "{Accounts}"}, 400, "Mandatory: SalesInv"),
        ("salesinvoice/SalesInvoices", {"Journal": "70", "SalesInvoiceLines": 3}, 400, "Error processing"),
        ("generaljournalentry/GeneralJournalEntries", {"JournalCode": "90", "GeneralJournalEntryLines": []}, 400, ""),
    ],
)  # fmt: skip
def test_rows_of_each_entity_are_checked(
    run: Any, client: Any, resource: str, row: dict[str, Any], status: int, says: str
) -> None:
    """Mandatory fields, types, lengths, keys and references, as the table of entities says."""

    async def main() -> None:
        async with client() as http:
            ids = await book(http)
            filled = {name: value.format(**ids) if isinstance(value, str) else value for name, value in row.items()}
            answer = await http.post(f"{API}/{resource}", json=filled)
            assert answer.status_code == status
            if says:
                assert answer.json()["error"]["message"]["value"].startswith(says)

    run(main)


def test_references_are_free_where_the_scenario_says_so(run: Any, client: Any) -> None:
    """A loader can practise contacts without loading their accounts first."""

    async def main() -> None:
        async with client(Scenario(check_references=False)) as http:
            row = {"Account": NOWHERE, "LastName": "B"}
            assert (await http.post(f"{API}/crm/Contacts", json=row)).status_code == 201

    run(main)


def test_values_come_back_as_the_platform_writes_them(run: Any, client: Any) -> None:
    """Blanks to the right, dates in milliseconds; a code of an item is not padded."""

    async def main() -> None:
        async with client() as http:
            await book(http)
            row = {"Code": "B", "Description": "d", "SalesVatCode": "2", "StartDate": "2014-02-12T00:00:00"}
            await http.post(f"{API}/logistics/Items", json=row)
            items = (await http.get(f"{API}/logistics/Items", params={"$filter": "Code eq 'B'"})).json()["d"]["results"]
            assert (items[0]["SalesVatCode"], items[0]["StartDate"]) == ("2  ", "/Date(1392163200000)/")
            first = (await http.get(f"{API}/logistics/Items?$top=1&$select=Code,Unit")).json()["d"][0]
            assert (first["Code"], first["Unit"]) == ("SEED-1", "stuk    ")
            counted = await http.get(f"{API}/bulk/Logistics/Items?$select=Code&$inlinecount=allpages")
            assert counted.json()["d"]["__count"] == "2"
            assert (await http.get(f"{API}/bulk/Logistics/Items")).status_code == 400

    run(main)


@pytest.mark.parametrize("service", ["", *sorted({entity.service for entity in ENTITIES.values()})])
def test_metadata_describes_what_is_there(run: Any, client: Any, service: str) -> None:
    """EDMX with types, keys, sets and the way to the lines; of one service, or of all."""
    edm = "{http://schemas.microsoft.com/ado/2008/09/edm}"

    async def main() -> None:
        async with client() as http:
            root = etree.fromstring((await http.get(f"{API}/{service}{'/' if service else ''}$metadata")).content)
            sets = [one.get("Name") for one in root.iter(f"{edm}EntitySet")]
            types = {one.get("Name") for one in root.iter(f"{edm}EntityType")}
            wanted = [entity for entity in ENTITIES.values() if service in {"", entity.service}]
            assert sorted(sets) == sorted(entity.set for entity in wanted)
            assert types == {entity.name for entity in wanted}
            if service:
                listed = etree.fromstring((await http.get(f"{API}/{service}/")).content)
                assert len(list(listed.iter("{http://www.w3.org/2007/app}collection"))) == len(wanted)

    run(main)


def test_the_companies_of_a_licence_are_listed_too(run: Any, client: Any) -> None:
    """The same companies under another address, where the id is spelt otherwise."""

    async def main() -> None:
        async with client() as http:
            row = (await http.get(f"{API}/hrm/Divisions?$top=1")).json()["d"][0]
            assert (row["Code"], row["HID"], "Hid" in row) == (1001, 1, False)

    run(main)


def test_a_list_has_to_be_filtered_where_the_scenario_says_so(run: Any, client: Any) -> None:
    """What happened to everybody overnight: a plain GET is a 400."""

    async def main() -> None:
        async with client(Scenario(filter_needed=True)) as http:
            assert (await http.get(f"{API}/crm/Accounts")).status_code == 400
            assert (await http.get(f"{API}/crm/Accounts?$filter=Name eq 'A'")).status_code == 200

    run(main)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["results", "Item", "AmountFC"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(sorted(SETS)))
def test_no_body_makes_the_server_fail(client: Any, virtual: Any, data: Any, name: str) -> None:
    """Whatever a row holds is booked or refused, and what is booked can be read with its lines."""
    entity = SETS[name]
    row = data.draw(st.dictionaries(st.sampled_from([*sorted(entity.known), "X"]), JSON, max_size=6))

    async def main() -> None:
        async with client(Scenario(check_references=False, unique_code=False)) as http:
            made = await http.post(f"{API}/{entity.resource}", json=row)
            assert made.status_code in {201, 400}
            expand = f"?$expand={','.join(entity.lines)}" if entity.lines else ""
            assert (await http.get(f"{API}/{entity.resource}{expand}")).status_code == 200
            if made.status_code == 201:
                address = f"{API}/{entity.resource}(guid'{made.json()['d'][entity.key]}')"
                assert (await http.put(address, json=row)).status_code in {204, 400, 405, 500}
                assert (await http.get(address)).status_code == 200
            assert (await http.get("/_mock/stats")).json()["internal_errors"] == 0

    virtual(main)
