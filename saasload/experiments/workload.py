"""The rows that experiments load: customers without a company column, so that they are dealt evenly."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LONG, SHORT = 1800, 900
"""Letters of a long and of a short remark: a row with the long one weighs about as much as two with the short."""
BYTES_OF_TEN = 10_800
"""A call of so many bytes takes ten short rows and not eleven, or one long with eight short ones and not nine."""


def write_customers(path: Path, *, rows: int, tag: str) -> None:
    """Write customers with a code each, which begins with `tag`, so that the next run's codes are others."""
    codes = [f"{tag}{number}" for number in range(1, rows + 1)]
    names = [f"Customer {code}" for code in codes]
    cities = ["Delft", "Gent", "Köln", "Łódź"]
    table = pa.table({"Code": codes, "Name": names, "City": [cities[row % len(cities)] for row in range(rows)]})
    pq.write_table(table, path)


def write_eleven_uploads(path: Path, *, companies: int, rows: int) -> None:
    """Write customers of whom each company's hundred travel in eleven uploads of nine or ten.

    The published EX10 has 1,100 calls for 10,000 rows in 100 companies. No number of rows a call gives that: ten gives
    1,000 and nine gives 1,200. Uploads are bounded by bytes as well, so every ninth customer has a long remark.
    """
    places = [row // companies for row in range(rows)]
    remarks = ["x" * (LONG if place % 9 == 0 and place % 100 < 90 else SHORT) for place in places]
    codes = [f"{number:06}" for number in range(rows)]
    pq.write_table(pa.table({"Code": codes, "Name": codes, "Remarks": remarks}), path)
