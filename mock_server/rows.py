"""Rows: an account's fields, as JSON and as XML write them."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType

import orjson
from lxml import etree

Fields = dict[str, object]

CODE_WIDTH = 18

TEXT_CAPS: Mapping[str, int] = MappingProxyType({
    "Code": CODE_WIDTH, "Name": 50, "Status": 1, "Type": 1, "SearchCode": 30,
    "AddressLine1": 80, "AddressLine2": 80, "AddressLine3": 80, "Postcode": 20, "City": 30, "State": 10, "Country": 3,
    "Email": 128, "Phone": 25, "PhoneExtension": 10, "Fax": 25, "Website": 128,
    "VATNumber": 35, "ChamberOfCommerce": 60, "DunsNumber": 30, "Language": 2, "SalesCurrency": 3,
    "PurchaseCurrency": 3, "SalesVATCode": 3, "PurchaseVATCode": 3, "PaymentConditionSales": 10,
    "PaymentConditionPurchase": 10, "CodeAtSupplier": 30, "Remarks": 4000,
})  # fmt: skip
"""Text fields and their longest length in characters."""

GUIDS = frozenset({
    "ID", "GLAccountSales", "GLAccountPurchase", "GLAR", "GLAP", "InvoiceAccount", "Parent", "MainContact",
    "AccountManager", "Reseller", "Creator", "Modifier",
})  # fmt: skip
BOOLEANS = frozenset({"IsSales", "IsSupplier", "IsReseller", "Blocked", "IsPurchase", "IsMember", "IsPilot"})
BYTES = frozenset({"IsAccountant", "IsAgency", "IsCompetitor", "IsMailing"})
DOUBLES = frozenset({"CreditLineSales", "CreditLinePurchase", "DiscountSales", "DiscountPurchase"})
INTEGERS = frozenset({"Division", "SecurityLevel"})
DATES = frozenset({"StartDate", "EndDate", "CustomerSince", "Created", "Modified"})
CHILDREN = frozenset({"BankAccounts"})
READ_ONLY = frozenset({"ID", "Created", "Modified", "Creator", "Modifier", "Division"})

KNOWN = frozenset(TEXT_CAPS) | GUIDS | BOOLEANS | BYTES | DOUBLES | INTEGERS | DATES | CHILDREN
"""Every property an account has."""

PADDED: Mapping[str, int] = MappingProxyType({"Country": 3, "SalesVATCode": 3, "PurchaseVATCode": 3})
"""Texts that are given back with blanks to the right."""

_XML_PATHS: Mapping[str, str] = MappingProxyType({
    "@status": "Status", "@searchcode": "SearchCode", "Name": "Name", "Phone": "Phone", "PhoneExt": "PhoneExtension",
    "Fax": "Fax", "Email": "Email", "HomePage": "Website", "Language@code": "Language", "IsSupplier": "IsSupplier",
    "IsBlocked": "Blocked", "IsReseller": "IsReseller", "IsPilot": "IsPilot", "IsSales": "IsSales",
    "IsPurchase": "IsPurchase", "IsMember": "IsMember", "IsAccountant": "IsAccountant",
    "CodeAtSupplier": "CodeAtSupplier", "Note": "Remarks", "VATSales@code": "SalesVATCode",
    "VATPurchase@code": "PurchaseVATCode", "VATNumber": "VATNumber", "ChamberOfCommerce": "ChamberOfCommerce",
    "DunsNumber": "DunsNumber", "SalesCurrency@code": "SalesCurrency", "PurchaseCurrency@code": "PurchaseCurrency",
    "SecurityLevel": "SecurityLevel", "CreditLine/Sales": "CreditLineSales", "Discount": "DiscountSales",
    "CreditLine/Purchase": "CreditLinePurchase", "SalesPaymentCondition@code": "PaymentConditionSales",
    "PurchasePaymentCondition@code": "PaymentConditionPurchase", "IsMailing": "IsMailing",
    "IsCompetitor": "IsCompetitor", "StartDate": "StartDate", "EndDate": "EndDate", "CustomerSince": "CustomerSince",
    "Address/AddressLine1": "AddressLine1", "Address/AddressLine2": "AddressLine2",
    "Address/AddressLine3": "AddressLine3", "Address/PostalCode": "Postcode", "Address/City": "City",
    "Address/State@code": "State", "Address/Country@code": "Country",
})  # fmt: skip
"""Where a field stands in an XML account. A path that is not here is kept as it is, with `xml:` before it."""

_IGNORED = frozenset({"@code", "@ID", "Address@type", "Address@default", "Address@ID"})
_EPOCH = re.compile(r"/Date\((-?\d{1,15})\)/")
_FORGIVING = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)


def xml_caps() -> dict[str, int]:
    """Return the longest text at each XML path that has a limit."""
    return {path: TEXT_CAPS[name] for path, name in _XML_PATHS.items() if name in TEXT_CAPS}


def read_row(row: bytes) -> Fields:
    """Read the fields of a stored row; its first byte tells JSON from XML."""
    if row.startswith(b"<"):
        return xml_fields(etree.fromstring(row, _FORGIVING))
    found = orjson.loads(row)
    return {name: value for name, value in found.items() if name not in READ_ONLY and name != "Code"}


def xml_fields(account: etree._Element) -> Fields:
    """Read the fields of an XML account, without code and id."""
    found: Fields = {}
    for path, text in _leaves(account, ""):
        name = _XML_PATHS.get(path, f"xml:{path}")
        if path not in _IGNORED and name not in found:
            found[name] = _typed(name, text)
    return found


def _leaves(element: etree._Element, prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in element.items():
        yield f"{prefix}@{_text(key)}", _text(value)
    text = (element.text or "").strip()
    if prefix and (text or (not len(element) and not element.attrib)):
        yield prefix, text
    for child in element:
        if isinstance(child.tag, str):
            yield from _leaves(child, f"{prefix}/{child.tag}" if prefix else child.tag)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def _typed(name: str, text: str) -> object:
    if name in BOOLEANS:
        return text.lower() in {"1", "true"}
    if name in BYTES or name in INTEGERS:
        return int(text) if text.isdecimal() and len(text) < 10 else int(text.lower() == "true")
    if name in DOUBLES:
        return _number(text)
    if name in DATES:
        return text if "T" in text else f"{text}T00:00:00"
    return text


def _number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def epoch_ms(text: object) -> int | None:
    """Read a date, ISO or as replies write it, as milliseconds since 1970 UTC; None where it is none.

    >>> epoch_ms("2014-02-12T00:00:00")
    1392163200000
    """
    found = _EPOCH.fullmatch(str(text))
    if found is not None:
        return int(found[1])
    try:
        moment = datetime.fromisoformat(str(text))
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def shown(name: str, value: object) -> object:
    """Return a field's value as JSON replies write it."""
    if value is None:
        return None
    if name in PADDED:
        return str(value).ljust(PADDED[name])
    if name in DATES:
        ms = epoch_ms(value)
        return value if ms is None else f"/Date({ms})/"
    return _number(value) if name in DOUBLES else value
