"""What is written and shown: JSON, CSV, HTML, PNG and the terminal."""

import csv
import io
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import orjson
import pytest
from rich.console import Console

from saasload.errors import RunFolderError
from saasload.experiments.curve import CurveResult, ModeCurve
from saasload.experiments.document import curve_document, levels_csv, rounded, to_json
from saasload.experiments.files import make_out, write_curve
from saasload.experiments.loads import Client
from saasload.experiments.models import LinearFlat
from saasload.experiments.page import curve_page
from saasload.experiments.plan import make_plan
from saasload.experiments.svg import nice_top, response_chart, throughput_chart
from saasload.experiments.terminal import advice_lines, chart_lines, show_curve

EIGHT = LinearFlat(25_000.0, 200_000.0).at


@pytest.fixture
def result(make_curve: Callable[..., ModeCurve]) -> CurveResult:
    """A curve of eight places."""
    return CurveResult(make_plan(modes=("batch",), repeats=3), "mock", (make_curve(EIGHT),), ())


def test_json_is_plain_and_rounded(result: CurveResult) -> None:
    """Six digits, no time of day, the advice at the front."""
    text = to_json(curve_document(result))
    document = orjson.loads(text)

    assert document["modes"][0]["recommended_parallel"] == 8
    assert document["simulated"] is True
    assert document["modes"][0]["levels"][0]["client"] is None
    assert rounded(document) == document


def test_csv_has_a_line_a_level(result: CurveResult) -> None:
    """With the interval's ends as columns of their own."""
    lines = list(csv.DictReader(io.StringIO(levels_csv(result.curves))))

    assert [line["parallel"] for line in lines] == ["1", "2", "4", "6", "8", "10", "16", "32", "100"]
    assert float(lines[4]["rows_per_hour.low"]) <= float(lines[4]["rows_per_hour.value"]) <= 201_000


def test_the_page_needs_nothing_from_outside(result: CurveResult) -> None:
    """No script, no address, no file; light and dark by the reader's own setting; what it says is escaped."""
    hostile = CurveResult(make_plan(scenario="<b>.toml"), "mock", result.curves, ())
    page = curve_page(hostile)

    assert "&lt;b&gt;.toml" in page
    assert "prefers-color-scheme:dark" in page
    assert not re.search(r"<script|https?://|src=|@import|url\(", page)
    HTMLParser().feed(page)


def test_charts_are_well_formed(result: CurveResult) -> None:
    """Each is one SVG with a name, a dot a level, and words on each dot."""
    for chart, dots in ((throughput_chart(result.curves), 9), (response_chart(result.curves[0], 0), 36)):
        root = ET.fromstring(chart)  # noqa: S314 our own
        assert root.get("aria-label")
        assert len(root.findall("circle[@class='d0']/title")) == dots


def test_a_client_that_is_the_bottleneck_is_said(make_curve: Callable[..., ModeCurve]) -> None:
    """On a terminal and on the page: its figures are not the target's."""
    busy = make_curve(EIGHT, client=Client(0.95, 3.0, 0.01), refused=2)

    assert any("this loader was the bottleneck" in line for line in advice_lines(busy))
    assert any("54 calls were refused" in line for line in advice_lines(busy))
    page = curve_page(CurveResult(make_plan(modes=("batch",)), "mock", (busy,), ()))
    assert '<td class="bad">95%</td>' in page


def test_late_wakes_make_a_bottleneck_too() -> None:
    """A loop that wakes late by a quarter of a response time measures itself."""
    assert Client(0.1, 30.0, 0.3).is_bottleneck
    assert not Client(0.1, 30.0, 0.1).is_bottleneck


def test_the_terminal_shows_chart_table_and_one_sentence(result: CurveResult) -> None:
    """Within 80 columns, nothing cut off."""
    out = io.StringIO()
    show_curve(Console(file=out, width=80), result)

    text = out.getvalue()
    assert "batch: use --parallel 8: 8 parallel calls give 100%" in text
    assert "…" not in text
    assert sum("●" in line.plain for line in chart_lines(result.curves)) > 4


def test_all_files_are_written(result: CurveResult, tmp_path: Path) -> None:
    """JSON, CSV, HTML and a PNG that is one."""
    make_out(tmp_path / "out")
    paths = write_curve(tmp_path / "out", result)

    assert [path.name for path in paths] == ["curve.json", "curve.csv", "curve.html", "curve.png"]
    assert paths[3].read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_made_is_said_before_anything_runs(tmp_path: Path) -> None:
    """A file in its place, for one."""
    (tmp_path / "out").write_text("")

    with pytest.raises(RunFolderError, match=r"--out .*: cannot be written: file exists"):
        make_out(tmp_path / "out")


@pytest.mark.parametrize("value", [1e-6, 0.31, 1.0, 9.9, 10.0, 204_933.0])
def test_the_top_of_an_axis_is_a_little_above(value: float) -> None:
    """Never below the figure, never twice as high."""
    assert value <= nice_top(value) <= 1.7 * value
