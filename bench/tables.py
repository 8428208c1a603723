"""Figures as Markdown, and into the page between their markers."""

import statistics
from collections.abc import Sequence
from pathlib import Path


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Write a table; the first column reads from the left, the others from the right.

    >>> table(["who", "rows/s"], [["saasload", "5"]])
    '| who | rows/s |\n| --- | ---: |\n| saasload | 5 |'
    """
    lines = [list(headings), ["---", *["---:"] * (len(headings) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Write the median and what lies around it.

    >>> spread([3.0, 1.0, 2.0])
    '2 (1-3)'
    """
    if not values:
        return "-"
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}-{max(values):{form}})"


def write_between(path: Path, name: str, text: str) -> None:
    """Put text between the markers of that name, which are added at the end of the page where it has none."""
    start, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    page = path.read_text(encoding="utf-8") if path.is_file() else "# Performance\n"
    if start not in page:
        page = f"{page.rstrip()}\n\n{start}\n{end}\n"
    before, _, rest = page.partition(start)
    after = rest.partition(end)[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{before}{start}\n{text.strip()}\n{end}{after}", encoding="utf-8")
