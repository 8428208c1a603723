"""The companies of the mock: who they are, drawn from the seed."""

import random
from dataclasses import dataclass, replace

from mock_server.scenario import Scenario

_PLACES = (
    ("NL", "EUR", ("Amstel", "Veluwe", "Maas", "Betuwe", "Zaan", "Twente", "Texel")),
    ("BE", "EUR", ("Schelde", "Ardennen", "Leie", "Kempen", "Dender")),
    ("DE", "EUR", ("Rhein", "Elbe", "Harz", "Neckar", "Eifel")),
    ("FR", "EUR", ("Loire", "Garonne", "Vosges")),
    ("ES", "EUR", ("Ebro", "Duero")),
    ("GB", "GBP", ("Severn", "Thames", "Pennine")),
    ("US", "USD", ("Hudson", "Ozark")),
)
_WEIGHTS = (50, 18, 14, 6, 4, 5, 3)
_TRADES = ("Bakery", "Bikes", "Building", "Consulting", "Dairy", "Design", "Flowers", "Foods", "Logistics", "Metals",
           "Optics", "Paper", "Press", "Seeds", "Software", "Textiles", "Tools", "Travel", "Wines")  # fmt: skip
_FORMS = {"NL": "B.V.", "BE": "NV", "DE": "GmbH", "FR": "SARL", "ES": "S.L.", "GB": "Ltd", "US": "Inc."}

ACTIVE = 1


@dataclass(frozen=True, slots=True)
class Company:
    """One company as the list of companies shows it."""

    code: int
    description: str
    country: str
    currency: str
    status: int
    blocking_status: int

    @property
    def open(self) -> bool:
        """Whether calls to it are let in."""
        return self.status == ACTIVE and self.blocking_status == 0

    def fields(self) -> dict[str, object]:
        """Return it as an entity."""
        return {
            "Code": self.code,
            "Hid": self.code - 1000,
            "HID": self.code - 1000,
            "Description": self.description,
            "Country": self.country,
            "Currency": self.currency,
            "Legislation": 0,
            "Status": self.status,
            "BlockingStatus": self.blocking_status,
            "Current": False,
            "IsMainDivision": False,
        }


def draw_companies(scenario: Scenario) -> dict[int, Company]:
    """Return the companies by number, each drawn from a stream of its own."""
    total = scenario.companies + scenario.archived
    numbers = range(scenario.first_company, scenario.first_company + total)
    return {
        number: _named(_draw(number, seed=scenario.seed, place=place, archived=place >= scenario.companies), scenario)
        for place, number in enumerate(numbers)
    }


def _named(company: Company, scenario: Scenario) -> Company:
    own = scenario.company.get(company.code)
    return company if own is None or own.name is None else replace(company, description=own.name)


def _draw(number: int, *, seed: int, place: int, archived: bool) -> Company:
    rng = random.Random(f"{seed}:company:{number}")  # noqa: S311 - a simulation
    country, currency, names = rng.choices(_PLACES, _WEIGHTS)[0]
    name = f"{rng.choice(names)} {rng.choice(_TRADES)} {_FORMS[country]}"
    status = (2 if place % 2 == 0 else 0) if archived else ACTIVE
    return Company(number, name, country, currency, status, blocking_status=0)
