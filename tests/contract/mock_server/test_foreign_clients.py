"""Clients that are not ours talk to the mock: what they take for the platform, is near enough to it."""

import warnings
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

BACK = "https://client.example/back"
TOKEN = {"Authorization": "Bearer mock-token"}


def installed(name: str) -> Any:
    """Import a client, or skip the test where it is not installed; its own warnings are none of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=f"{name} is not installed (pip install 'saasload[dev]')")


def session() -> requests.Session:
    """Return a session that carries the token."""
    found = requests.Session()
    found.trust_env = False
    found.headers.update(TOKEN)
    return found


@pytest.mark.filterwarnings("ignore")
def test_pyodata_reads_creates_and_batches(url: str, booked: Any) -> None:
    """An OData V2 client finds its way by the metadata alone: rows, filters, lines, change sets."""
    pyodata = installed("pyodata")
    client = pyodata.Client(f"{url}/api/v1/1001/crm/", session())

    made = client.entity_sets.Accounts.create_entity().set(Code="7".rjust(18), Name="Bakery", Country="NL").execute()
    read = client.entity_sets.Accounts.get_entity(made.ID).execute()
    assert (read.Name, read.Country, read.Code.strip()) == ("Bakery", "NL ", "7")
    query = client.entity_sets.Accounts.get_entities().select("ID,Name").top(5)
    assert [row.Name for row in query.filter("Name eq 'Bakery'").execute()] == ["Bakery"]
    assert client.entity_sets.Accounts.get_entities().count().execute() == 1
    client.entity_sets.Accounts.update_entity(made.ID, method="PUT").set(City="Delft").execute()
    assert client.entity_sets.Accounts.get_entity(made.ID).execute().City == "Delft"

    batch, changes = client.create_batch("b1"), client.create_changeset("c1")
    for number in range(3):
        changes.add_request(client.entity_sets.Accounts.create_entity().set(Code=str(number), Name=f"N{number}"))
    batch.add_request(changes)
    batch.add_request(client.entity_sets.Accounts.get_entities().select("Code").top(9))
    answered = batch.execute()
    assert [row.Code.strip() for row in answered[0]] == ["0", "1", "2"]
    assert len(answered[1]) == 4
    client.entity_sets.Accounts.delete_entity(made.ID).execute()
    assert booked(key="Code") == {"rows": 3, "distinct": 3, "twice": 0}


@pytest.mark.filterwarnings("ignore")
def test_pyodata_follows_lines(url: str) -> None:
    """Deep inserts and the way from an invoice to its lines stand in the metadata."""
    pyodata = installed("pyodata")
    http = session()
    root = f"{url}/api/v1/1001"
    account = http.post(f"{root}/crm/Accounts", json={"Name": "A"}).json()["d"]["ID"]
    item = http.post(f"{root}/logistics/Items", json={"Code": "S", "Description": "Seeds"}).json()["d"]["ID"]
    client = pyodata.Client(f"{root}/salesinvoice/", http)

    lines = [{"Item": item, "Quantity": 2.0}, {"Item": item, "Quantity": 3.0}]
    made = client.entity_sets.SalesInvoices.create_entity().set(
        Journal="70", OrderedBy=account, SalesInvoiceLines=lines
    )
    invoice = made.execute()
    found = client.entity_sets.SalesInvoices.get_entity(invoice.InvoiceID).expand("SalesInvoiceLines").execute()
    assert [line.Quantity for line in found.SalesInvoiceLines] == [2.0, 3.0]
    followed = client.entity_sets.SalesInvoices.get_entity(invoice.InvoiceID).nav("SalesInvoiceLines")
    assert len(followed.get_entities().execute()) == 2


def test_odatapy_writes_batches_and_reads_their_answers(url: str, booked: Any) -> None:
    """A V4 client; its batches are of the form that V2 has too: absolute addresses, names, several change sets."""
    batch_module = installed("odatapy.client.batch")
    root = f"{url}/api/v1/1001/crm"
    batch = batch_module.BatchRequest(root)
    for rows in ((1, 2), (3, 3), (4,)):
        changes = batch.add_changeset()
        for number in rows:
            body = f'{{"Code": "{number}", "Name": "N"}}'.encode()
            changes.add("POST", f"{root}/Accounts", body, headers={"Content-Type": "application/json"})
    batch.add_retrieve(f"{root}/Accounts?$select=Code&$top=9")

    reply = session().post(f"{root}/$batch", data=batch.serialize(), headers={"Content-Type": batch.content_type()})
    boundary = reply.headers["content-type"].partition("boundary=")[2]
    parts = batch_module.parse_multipart_batch_response(reply.content, boundary)
    statuses = [[one.status_code for one in part] if isinstance(part, list) else part.status_code for part in parts]
    assert (reply.status_code, statuses) == (202, [[201, 201], 500, [201], 200])
    assert [one.content_id for one in parts[0]] == ["1", "2"]
    assert booked(key="Code")["rows"] == 3


@pytest.mark.filterwarnings("ignore")
def test_a_client_of_the_platform_signs_in_and_works(served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python-exact-online`, pointed at the mock: consent, tokens, the company by itself, rows, errors, deletion."""
    api_module = installed("exactonline.api")
    config, cache = installed("exactonline.config"), installed("exactonline.cachehandler")
    accounts = installed("exactonline.models.accounts")
    kept: dict[str, Any] = {}
    monkeypatch.setattr(cache.CacheHandler, "getCache", lambda _, key: kept.get(key))
    monkeypatch.setattr(cache.CacheHandler, "setCache", lambda _, key, value: kept.__setitem__(key, value))
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    with served("token-rotation", "--time-scale", "50") as (http, _):
        url = str(http.base_url).rstrip("/")
        monkeypatch.setattr(config, "BASE_URL", f"{url}/api/v1")
        monkeypatch.setattr(config, "AUTH_URL", f"{url}/api/oauth2/auth")
        monkeypatch.setattr(config, "ACCESS_TOKEN_URL", f"{url}/api/oauth2/token")
        api = api_module.ExactOnlineAPI("mock-client", "mock-secret")
        asked = parse_qs(urlsplit(api.authHandler.getAuthURL(BACK)).query)
        form = {name: values[0] for name, values in asked.items()} | {"answer": "allow"}
        api.authHandler.retrieveToken(http.post("/api/oauth2/auth", data=form).headers["location"])
        assert kept["mock-client"]["refreshToken"].startswith("mock!")

        made = api.accounts.create(accounts.Account(Name="Bakery", Code="7"))
        assert api.division == 1001
        found = api.accounts.get(made.ID)
        assert (found.Name, found.Code.strip()) == ("Bakery", "7")
        listed = api.accounts.list(filter={"Name": "Bakery"})
        assert [row.Name for row in listed.items()] == ["Bakery"]
        again = api.accounts.create(accounts.Account(Name="Bakery", Code="7"))
        assert (again.hasError, again.error.message) == (True, "Data already exists: Code")
        assert api.accounts.delete(made.ID) is True


@pytest.mark.filterwarnings("ignore")
def test_a_kit_for_the_platform_reads_and_writes(url: str, booked: Any) -> None:
    """`exact-online-sdk`: rows, all pages, and errors as its own exceptions."""
    sdk, kit = installed("exact_online_sdk.client"), installed("exact_online_sdk.config")
    errors = installed("exact_online_sdk.exceptions")
    settings = kit.Settings("mock-client", "mock-secret", BACK, base_url=url, division=1001)
    auth = SimpleNamespace(get_access_token=lambda: "mock-token")
    with sdk.ExactOnlineClient(settings, auth=auth) as client:
        for number in range(70):
            client.post("crm/Accounts", json={"Code": str(number), "Name": f"N{number}"})
        pages = list(client.iter_pages("crm/Accounts", params={"$select": "ID,Code"}))
        assert [len(page) for page in pages] == [60, 10]
        key = pages[0][0]["ID"]
        client.put(f"crm/Accounts(guid'{key}')", json={"City": "Delft"})
        assert client.get(f"crm/Accounts(guid'{key}')")["City"] == "Delft"
        client.delete(f"crm/Accounts(guid'{key}')")
        with pytest.raises(errors.APIError):
            client.post("crm/Accounts", json={"Code": "no name"})
    assert booked(key="Code") == {"rows": 69, "distinct": 69, "twice": 0}
