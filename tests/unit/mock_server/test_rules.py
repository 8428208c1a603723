"""Rules: what a row is refused for, and in which words."""

from typing import Any

import pytest

from mock_server.entities import ACCOUNT
from mock_server.rules import Refusal, Rules

ENGLISH = Rules(language="en", mandatory_status=400)


@pytest.mark.parametrize(
    ("row", "refusal"),
    [
        ({"Name": "A"}, None),
        ({"Name": "n" * 50, "Code": "1".rjust(18), "IsSales": True, "StartDate": "2026-01-31T00:00:00"}, None),
        ({"Name": "A", "CreditLineSales": "10.50", "DiscountSales": 0.055, "IsMailing": 1, "Fax": None}, None),
        ({}, Refusal(400, "Mandatory: Name")),
        ({"Name": None}, Refusal(400, "Mandatory: Name")),
        ({"Name": "  "}, Refusal(400, "Mandatory: Name")),
        ({"Name": "n" * 51}, Refusal(400, "Too long: Name (maximum 50)")),
        ({"Name": "A", "Code": "1" * 19}, Refusal(400, "Too long: Code (maximum 18)")),
    ],
)
def test_a_new_row_is_checked(row: dict[str, Any], refusal: Refusal | None) -> None:
    """Mandatory fields and lengths, with the limit in the text."""
    assert ENGLISH.new(ACCOUNT, row) == refusal


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("Name", 5), ("IsSales", "yes"), ("IsSales", 1), ("StartDate", "31-01-2026"), ("CreditLineSales", "ten"),
        ("Nmae", "A"),
        ("StartDate", "/Date(x)/"), ("SecurityLevel", "1"), ("BankAccounts", {}), ("Parent", 3), ("IsMailing", True),
    ],
)  # fmt: skip
def test_a_wrong_type_or_name_is_an_error_of_the_stream(field: str, value: object) -> None:
    """What cannot be read as its type is refused with the platform's text for a bad body."""
    refusal = ENGLISH.new(ACCOUNT, {"Name": "A", field: value})

    assert refusal is not None
    assert refusal.status == 400
    assert refusal.text.startswith("Error processing request stream.")
    assert field in refusal.text


def test_an_update_needs_no_name() -> None:
    """Fields that are not sent are not missing."""
    assert ENGLISH.changes(ACCOUNT, {"City": "Delft"}) is None
    assert ENGLISH.changes(ACCOUNT, {"City": "D" * 31}) == Refusal(400, "Too long: City (maximum 30)")


def test_the_language_and_the_status_are_the_scenarios() -> None:
    """Texts come in the user's language."""
    dutch = Rules(language="nl", mandatory_status=500)

    assert dutch.new(ACCOUNT, {}) == Refusal(500, "Verplicht: Name", "nl")
    assert dutch.exists("Code") == Refusal(500, "Gegeven bestaat reeds: Code", "nl")
