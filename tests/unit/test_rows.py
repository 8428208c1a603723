"""Rows on their way from the spool into calls."""

from typing import Any

import pytest

from saasload.model import Company
from saasload.rows import HELD_ROWS, SpooledRows


@pytest.mark.parametrize(("lanes", "rows"), [(1, 1_000), (50, 1_000), (100, 500), (1_000, 50), (100_000, 50)])
def test_many_lanes_hold_few_encoded_rows_each(lanes: int, rows: int) -> None:
    """A thousand companies must not hold a thousand times what one may; too few at once would be slow."""
    unused: Any = None
    made = SpooledRows(unused, unused, Company("1001"), bytearray(), lanes)

    assert made.chunk_rows == rows
    assert made.chunk_rows * lanes <= HELD_ROWS or made.chunk_rows == 50
