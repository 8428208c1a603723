"""Write a realistic file of customers to try with."""

import os
import random
from array import array
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from saasload.errors import UsageError

GROUP_ROWS = 1 << 16
FIRST_COMPANY = 1001

# Signs that break careless writers of XML, JSON and URLs are here on purpose.
_FIRST = (
    "De Vries", "Müller", "Jansen & Zn.", "Café Zürich", "O'Hara", "Łukasiewicz", "Van den Berg", "Smit < Co",
    'Bakkerij "Zon"', "Ångström", "Peeters", "García", "Dubois", "Hoekstra", "Nyström", "Bjørn",
    "Kowalska", "Schröder", "De Boer", "Lefèvre", "Martens", "Visser & Visser", "Ünal", "Novák",
    "Claes", "Meijer", "D'Angelo", "Brouwer", "Çelik", "Wouters", "Kramer", "Ó Briain",
)  # fmt: skip
_TRADE = (
    "Bouw", "Logistics", "Tuinen", "Software", "Bakery", "Metaal", "Transport", "Optiek", "Fietsen", "Advies",
    "Catering", "Textil", "Import", "Design", "Energie", "Zorg",
)  # fmt: skip
_KIND = ("B.V.", "GmbH", "N.V.", "& Zonen", "Group", "SARL", "V.O.F.", "Ltd")
_MAIL = (
    "info", "sales", "finance", "administratie", "inkoop", "hello", "debiteuren", "office",
)  # fmt: skip
_DOMAIN = (
    "devries", "mueller", "zonlicht", "noordzee", "kaapstad", "bergtop", "rivier", "lindeboom", "polder", "duinweg",
    "molenaar", "havenstad", "kasteel", "veldzicht", "waterkant", "zilver",
)  # fmt: skip
_STREET = (
    "Dorpsstraat", "Kerkweg", "Hauptstraße", "Rue de l'Église", "Stationsplein", "Molenlaan", "Grote Markt",
    "Am Weiher", "Boulevard Céleste", "Zonnedijk", "Oude Haven", "Nieuwstraat", "Parklaan", "Bergstraße",
    "Chaussée d'Or", "Lange Gracht",
)  # fmt: skip
# city, country, language, dialling code, digits of a postcode, before and after the digits of a VAT number
_PLACES = (
    ("Delft", "NL", "nl", "+31 15 ", 4, "NL", "B01"),
    ("'s-Hertogenbosch", "NL", "nl", "+31 73 ", 4, "NL", "B01"),
    ("Utrecht", "NL", "nl", "+31 30 ", 4, "NL", "B02"),
    ("Ede", "NL", "nl", "+31 318 ", 4, "NL", "B01"),
    ("Súdwest-Fryslân", "NL", "nl", "+31 515 ", 4, "NL", "B03"),
    ("Zwolle", "NL", "nl", "+31 38 ", 4, "NL", "B01"),
    ("Gent", "BE", "nl", "+32 9 ", 4, "BE0", ""),
    ("Liège", "BE", "fr", "+32 4 ", 4, "BE0", ""),
    ("Köln", "DE", "de", "+49 221 ", 5, "DE", ""),
    ("Dresden", "DE", "de", "+49 351 ", 5, "DE", ""),
    ("Besançon", "FR", "fr", "+33 3 ", 5, "FR7", ""),
    ("Bourg-en-Bresse", "FR", "fr", "+33 4 ", 5, "FR1", ""),
    ("Malmö", "SE", "sv", "+46 40 ", 5, "SE", ""),
    ("Łódź", "PL", "pl", "+48 42 ", 5, "PL", ""),
    ("A Coruña", "ES", "es", "+34 981 ", 5, "ESB", ""),
    ("Cork", "IE", "en", "+353 21 ", 4, "IE", ""),
)


def write_sample(
    path: Path,
    *,
    rows: int,
    companies: int,
    seed: int = 1,
    skew: float = 0.0,
    order: str = "shuffled",
) -> None:
    """Write `rows` customers of companies 1001, 1002 … to a .parquet or .csv file; the seed decides everything.

    `skew` is the exponent of Zipf's law over the companies: 0 gives each as many rows, 1 the second half of what the
    first has. Each company has at least one row where there are enough. `order` is "shuffled", "sorted" (by company)
    or "dealt" (round and round, as long as a company has rows). Memory: four bytes a row when shuffled, and one group
    of 65,536 rows.
    """
    _check(path, rows=rows, companies=companies, skew=skew, order=order)
    rng = random.Random(seed)  # noqa: S311 - a sample is no secret
    sequence = _ORDERS[order](_quotas(rows, companies, skew), rng)
    part = path.with_name(f".{path.name}.part")
    try:
        with _writer(part, path.suffix.lower()) as writer:
            for batch in _batches(sequence, rows, companies, rng):
                writer.write_batch(batch)
        part.replace(path)
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror or error}"
        raise UsageError(message) from error
    finally:
        part.unlink(missing_ok=True)


def _check(path: Path, *, rows: int, companies: int, skew: float, order: str) -> None:
    """Refuse what cannot be written."""
    if path.suffix.lower() not in (".parquet", ".csv"):
        message = f"{path.name}: a sample is written to .parquet or .csv"
    elif path.exists() and not path.is_file():
        message = f"{path}: there already, and not a file"
    elif rows < 0:
        message = f"--rows {rows}: at least 0"
    elif companies < 1:
        message = f"--companies {companies}: at least 1"
    elif not 0 <= skew <= 10:
        message = f"--skew {skew:g}: from 0 to 10"
    elif order not in _ORDERS:
        message = f"--order {order}: use {', '.join(list(_ORDERS)[:-1])} or {list(_ORDERS)[-1]}"
    else:
        return
    raise UsageError(message)


def _quotas(rows: int, companies: int, skew: float) -> list[int]:
    """Return how many rows each company has, by largest remainder."""
    least = 1 if rows >= companies else 0
    weights = [1.0 / (place + 1) ** skew for place in range(companies)]
    shares = [(rows - least * companies) * weight / sum(weights) for weight in weights] if rows else [0.0] * companies
    quotas = [least + int(share) for share in shares]
    by_remainder = sorted(range(companies), key=lambda place: int(shares[place]) - shares[place])
    for place in by_remainder[: rows - sum(quotas)]:
        quotas[place] += 1
    return quotas


def _sorted(quotas: Sequence[int], rng: random.Random) -> Iterator[int]:  # noqa: ARG001 - one signature for all orders
    """Yield company after company."""
    for company, quota in enumerate(quotas):
        for _ in range(quota):
            yield company


def _dealt(quotas: Sequence[int], rng: random.Random) -> Iterator[int]:  # noqa: ARG001 - one signature for all orders
    """Yield every company in turn, while it has rows."""
    by_quota = sorted(quotas)
    done = 0
    while done < by_quota[-1]:
        until = by_quota[bisect(by_quota, done)]
        left = [company for company, quota in enumerate(quotas) if quota > done]
        for _ in range(until - done):
            yield from left
        done = until


def _shuffled(quotas: Sequence[int], rng: random.Random) -> Iterator[int]:
    """Yield companies in no order."""
    cards = array("i", _sorted(quotas, rng))
    rng.shuffle(cards)
    yield from cards


_ORDERS = MappingProxyType({"shuffled": _shuffled, "sorted": _sorted, "dealt": _dealt})


def _writer(path: Path, suffix: str) -> Any:
    """Open the writer for the suffix."""
    if suffix == ".csv":
        return pacsv.CSVWriter(os.fspath(path), _schema(), write_options=pacsv.WriteOptions(batch_size=GROUP_ROWS))
    return pq.ParquetWriter(path, _schema())


def _batches(sequence: Iterator[int], rows: int, companies: int, rng: random.Random) -> Iterator[Any]:
    """Yield the customers, a group at a time."""
    codes = pa.array([str(FIRST_COMPANY + place) for place in range(companies)], pa.string())
    last = array("i", [0]) * companies
    # each group draws from its own generator, so that the order of the companies changes nothing else
    draw = random.Random(rng.getrandbits(64))  # noqa: S311 - a sample is no secret
    for start in range(0, rows, GROUP_ROWS):
        count = min(GROUP_ROWS, rows - start)
        places = array("i")
        numbers = array("i")
        for _, place in zip(range(count), sequence, strict=False):
            last[place] += 1
            places.append(place)
            numbers.append(last[place])
        yield _customers(codes.take(_numbers(places)), _numbers(numbers), _Dice(draw, count))


def _numbers(values: "array[int]") -> Any:
    """Give Python's array to Arrow, without a copy."""
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


class _Dice:
    """Columns of chance."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self._rng = rng
        self._count = count

    def below(self, limit: int) -> Any:
        """Return numbers from 0 up to `limit`."""
        raw = pa.py_buffer(self._rng.randbytes(4 * self._count))
        number = pa.Array.from_buffers(pa.uint32(), self._count, [None, raw]).cast(pa.int64())
        return pc.subtract(number, pc.multiply(pc.divide(number, limit), limit))

    def one_of(self, values: Sequence[str]) -> Any:
        """Return a value for each row."""
        return pa.array(values, pa.string()).take(self.below(len(values)))

    def digits(self, count: int) -> Any:
        """Return so many digits, zeros in front too."""
        return _padded(self.below(10**count), count)

    def sometimes(self, percent: int, values: Any) -> Any:
        """Return the values, and null for `percent` of the rows."""
        return pc.if_else(pc.less(self.below(100), percent), pa.scalar(None, values.type), values)


def _padded(numbers: Any, width: int) -> Any:
    """Write numbers as text with zeros in front."""
    return pc.utf8_lpad(numbers.cast(pa.string()), width, padding="0")


def _schema() -> Any:
    """Return the columns of a sample."""
    texts = ("company", "Code", "Name", "Email", "Phone", "Website", "AddressLine1", "Postcode", "City", "Country")
    return pa.schema(
        [
            *((name, pa.string()) for name in (*texts, "VATNumber", "ChamberOfCommerce", "Language")),
            ("IsSales", pa.bool_()),
            ("CreditLineSales", pa.decimal128(12, 2)),
            ("StartDate", pa.date32()),
        ]
    )


def _customers(company: Any, number: Any, dice: _Dice) -> Any:
    """Make up one customer for each row."""
    join: Callable[..., Any] = pc.binary_join_element_wise
    place = dice.below(len(_PLACES))
    city, country, language, dial, _, before, after = (
        pa.array([row[item] for row in _PLACES]).take(place) for item in range(7)
    )
    code = _padded(number, 6)
    domain = dice.one_of(_DOMAIN)
    columns = {
        "company": company,
        "Code": code,
        "Name": join(dice.one_of(_FIRST), dice.one_of(_TRADE), dice.one_of(_KIND), " "),
        "Email": dice.sometimes(4, join(dice.one_of(_MAIL), "@", domain, code, ".example", "")),
        "Phone": dice.sometimes(9, join(dial, dice.digits(7), "")),
        "Website": dice.sometimes(30, join("https://www.", domain, code, ".example", "")),
        "AddressLine1": join(dice.one_of(_STREET), pc.add(dice.below(240), 1).cast(pa.string()), " "),
        "Postcode": _postcodes(place, country, dice),
        "City": city,
        "Country": country,
        "VATNumber": dice.sometimes(12, join(before, dice.digits(9), after, "")),
        "ChamberOfCommerce": dice.digits(8),
        "Language": language,
        "IsSales": pc.less(dice.below(100), 80),
        "CreditLineSales": dice.sometimes(25, _money(dice.below(5_000_000))),
        "StartDate": dice.sometimes(15, pc.add(dice.below(9000), 10_957).cast(pa.int32()).cast(pa.date32())),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _schema().names], schema=_schema())


def _postcodes(place: Any, country: Any, dice: _Dice) -> Any:
    """Return postcodes of the right length; French ones may begin with a zero, Dutch ones end in letters."""
    widths = pa.array([row[4] for row in _PLACES], pa.int64()).take(place)
    five = dice.digits(5)
    four = pc.add(dice.below(9000), 1000).cast(pa.string())
    letters = dice.one_of(("AB", "CD", "EX", "GH", "KL", "NP", "RS", "TZ"))
    dutch = pc.binary_join_element_wise(four, letters, " ")
    return pc.if_else(pc.equal(country, "NL"), dutch, pc.if_else(pc.equal(widths, 5), five, four))


def _money(cents: Any) -> Any:
    """Return cents as an amount."""
    whole = cents.cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.01"), pa.decimal128(3, 2))).cast(pa.decimal128(12, 2))
