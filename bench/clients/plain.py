"""(c) How rows become calls in a script of an afternoon: json.dumps and f-strings."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import pyarrow.parquet as pq

from bench.clients.common import TOKEN

_AUTH = {"Authorization": f"Bearer {TOKEN}"}
_SIZES = {"batch": 250, "xml": 100}

Row = dict[str, Any]


class Post(NamedTuple):
    """One call."""

    path: str
    headers: dict[str, str]
    body: bytes
    rows: int


def posts(file: Path, mode: str) -> Iterator[Post]:
    """Read the file and make its calls."""
    rows = pq.read_table(file).to_pylist()
    if mode == "insert":
        for row in rows:
            company = row.pop("company")
            headers = {**_AUTH, "Content-Type": "application/json", "Accept": "application/json"}
            yield Post(f"/api/v1/{company}/crm/Accounts", headers, _json(row).encode(), 1)
        return
    by_company: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_company[row.pop("company")].append(row)
    size = _SIZES[mode]
    for company, own in by_company.items():
        for start in range(0, len(own), size):
            yield (_batch if mode == "batch" else _xml)(company, own[start : start + size])


def check(mode: str, status: int, text: str, rows: int) -> None:
    """Look whether all rows of a call were taken."""
    taken = {"insert": rows, "batch": text.count("HTTP/1.1 201"), "xml": text.count('type="2"')}[mode]
    if not 200 <= status < 300 or taken != rows:
        message = f"HTTP {status}, {taken} of {rows} rows taken: {text[:300]}"
        raise RuntimeError(message)


def _json(row: Row) -> str:
    return json.dumps({name: value for name, value in row.items() if value is not None}, default=str)


def _batch(company: str, rows: list[Row]) -> Post:
    parts = []
    for number, row in enumerate(rows):
        body = _json(row)
        parts.append(
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=change_1\r\n\r\n"
            "--change_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
            f"Content-ID: {number}\r\n\r\n"
            f"POST /api/v1/{company}/crm/Accounts HTTP/1.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}\r\n--change_1--\r\n"
        )
    body = "".join(parts) + "--batch_1--\r\n"
    headers = {**_AUTH, "Content-Type": "multipart/mixed; boundary=batch_1", "Accept": "multipart/mixed"}
    return Post(f"/api/v1/{company}/crm/$batch", headers, body.encode(), len(rows))


_TAGS = (("Name", "Name"), ("Phone", "Phone"), ("Email", "Email"), ("Website", "HomePage"))
_LAST = (("VATNumber", "VATNumber"), ("ChamberOfCommerce", "ChamberOfCommerce"), ("StartDate", "StartDate"))


def _xml(company: str, rows: list[Row]) -> Post:
    accounts = []
    for row in rows:
        first = "".join(f"<{tag}>{escape(row[name])}</{tag}>" for name, tag in _TAGS if row[name] is not None)
        last = "".join(f"<{tag}>{escape(str(row[name]))}</{tag}>" for name, tag in _LAST if row[name] is not None)
        address = (
            f"<AddressLine1>{escape(row['AddressLine1'])}</AddressLine1><PostalCode>{escape(row['Postcode'])}</PostalCode>"
            f"<City>{escape(row['City'])}</City><Country code={quoteattr(row['Country'])}/>"
        )
        accounts.append(
            f"<Account code={quoteattr(row['Code'])}>{first}<Language code={quoteattr(row['Language'])}/>"
            f'<IsSales>{int(row["IsSales"])}</IsSales><Address type="VIS" default="1">{address}</Address>'
            f"{last}</Account>"
        )
    body = f"<eExact><Accounts>{''.join(accounts)}</Accounts></eExact>"
    headers = {**_AUTH, "Content-Type": "application/xml; charset=utf-8"}
    return Post(f"/docs/XMLUpload.aspx?Topic=Accounts&_Division_={company}", headers, body.encode(), len(rows))
