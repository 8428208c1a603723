"""Reading CSV: all cells text, odd rows as problems."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saasload.errors import UsageError
from saasload.source.csv_exact import exact_batches
from saasload.source.csv_file import CsvSource
from saasload.source.readers import open_source

CODES = "007 0010 00042 021000021 12E3 1e5 0x1F 1_000 +31 TRUE NaN N/A 2024-02 1.10 NULL null".split()  # noqa: SIM905
IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

Rows = list[list[str | None]]


def read(path: Path, rows: int = 16_384) -> tuple[Rows, dict[int, str]]:
    """Read all cells, and the problems."""
    return gather(CsvSource(path).batches(rows))


def gather(batches: object) -> tuple[Rows, dict[int, str]]:
    """Put batches together; row numbers must follow on."""
    found: Rows = []
    problems: dict[int, str] = {}
    for batch in batches:  # type: ignore[attr-defined]  # any iterable of batches
        assert batch.first_row == len(found) + 1
        assert len(batch)
        found += [list(row.values()) for row in batch.batch.to_pylist()]
        problems |= batch.problems
    return found, problems


def write(folder: Path, data: bytes | str) -> Path:
    """Write a CSV file."""
    path = folder / "rows.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_codes_that_look_like_numbers_stay_text(tmp_path: Path) -> None:
    """C21: bare or quoted, every cell is what is written."""
    path = write(tmp_path, "code,quoted\n" + "".join(f'{code},"{code}"\n' for code in [*CODES, " 5 "]))

    assert read(path) == ([[code, code] for code in [*CODES, " 5 "]], {})


def test_amounts_with_commas_stay_text(tmp_path: Path) -> None:
    """C23: what an amount means is not the reader's to say."""
    path = write(tmp_path, 'id,amount\n1,"1.234,56"\n2,"-9,00"\n3,1.355\n4,"€ 4.711,98"\n')

    assert [row[1] for row in read(path)[0]] == ["1.234,56", "-9,00", "1.355", "€ 4.711,98"]


def test_empty_cells_are_null_quoted_or_not(tmp_path: Path) -> None:
    """Writers that quote everything quote what is not there."""
    assert read(write(tmp_path, 'a,b,c\n,"",x\n')) == ([[None, None, "x"]], {})


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("id,name,name", "columns 2 and 3 are both called 'name'"),
        ("id,Name,NAME", "columns 2 and 3 are both called 'Name'"),
        ("id,name,name ", "columns 2 and 3 are both called 'name'"),
        ("id,name,", "column 3 has no name"),
        ("id,__row__", "column 2 is called '__row__'"),
    ],
)
def test_a_header_that_loses_a_column_is_refused(tmp_path: Path, header: str, words: str) -> None:
    """C26: no last one wins."""
    path = write(tmp_path, header + "\n1,first,second\n")

    with pytest.raises(UsageError, match=words):
        open_source(path)


def test_ragged_rows_are_problems_of_their_own(tmp_path: Path) -> None:
    """C26: the other rows load; the message has the line and the text."""
    path = write(tmp_path, "id,name,city\n1,a,Delft\n2,b\n3,c,Breda,extra\n4,d,\n5,e,Ede,\n")

    rows, problems = read(path)

    assert rows == [["1", "a", "Delft"], [None] * 3, [None] * 3, ["4", "d", None], [None] * 3]
    assert problems == {
        2: "line 3: 2 cells where the header has 3: 2,b",
        3: "line 4: 4 cells where the header has 3: 3,c,Breda,extra",
        5: "line 6: 4 cells where the header has 3: 5,e,Ede,",
    }


def test_a_late_bad_byte_is_a_problem_of_its_row(tmp_path: Path) -> None:
    """C27: 60,000 rows load, the last one is named by its line, no broken text comes through."""
    body = "".join(f"{row},{row:06d},plain text number {row}\n" for row in range(1, 60_001))
    path = write(tmp_path, b"id,code,name\n" + body.encode() + "60001,060001,Café €9\n".encode("cp1252"))

    rows, problems = read(path)

    assert (len(rows), rows[59_999], rows[60_000]) == (
        60_001,
        ["60000", "060000", "plain text number 60000"],
        [None] * 3,
    )
    assert problems == {60_001: "line 60002: not UTF-8: 60001,060001,Caf\\xe9 \\x809"}


def test_a_late_text_in_a_column_of_digits_changes_nothing(tmp_path: Path) -> None:
    """C27: no type is guessed from the first block."""
    body = "".join(f"{row},{row:06d},\n" for row in range(1, 130_001))
    path = write(tmp_path, "id,code,name\n" + body + "130001,A-77,first name ever\n")

    rows, problems = read(path)

    assert (len(rows), rows[0], rows[-1]) == (130_001, ["1", "000001", None], ["130001", "A-77", "first name ever"])
    assert problems == {}


def test_a_ragged_row_in_the_second_block_keeps_every_number(tmp_path: Path) -> None:
    """The exact reader goes on where the fast one stopped: no row twice, none lost."""
    lines = [f"{row},{'x' * 60}" for row in range(1, 40_001)]
    lines[30_000] = "ragged"
    path = write(tmp_path, "id,text\n" + "\n".join(lines))

    rows, problems = read(path, 1000)

    assert [row[0] for row in rows] == [str(row) if row != 30_001 else None for row in range(1, 40_001)]
    assert list(problems) == [30_001]


def test_lines_are_counted_past_empty_ones_and_those_inside_quotes(tmp_path: Path) -> None:
    """Also far into the file, where the exact reader has skipped what the fast one read."""
    text = f'"{"x" * 30}\n{"y" * 30}"'
    lines = [f"{row},{text}" + "\n" * (row % 10 == 0) for row in range(1, 40_001)]
    lines[38_999] = "ragged"
    path = write(tmp_path, "id,text\n" + "\n".join(lines))

    rows, problems = read(path)

    assert [row[0] for row in rows] == [str(row) if row != 39_000 else None for row in range(1, 40_001)]
    line = 1 + 2 * 38_999 + 3_899 + 1
    assert problems == {39_000: f"line {line}: 1 cell where the header has 2: ragged"}


def test_a_mark_at_the_start_is_removed(tmp_path: Path) -> None:
    """A UTF-8 byte order mark is no part of the first name."""
    source = open_source(write(tmp_path, "\ufeffid,name\n1,a\n"))

    assert source.columns == ("id", "name")
    assert read(source.path)[0] == [["1", "a"]]


@pytest.mark.parametrize("data", ["id,name\n", "id,name", "\ufeffid,name\r\n\r\n"])
def test_a_header_alone_is_no_rows(tmp_path: Path, data: str) -> None:
    """Zero rows is not an error here."""
    assert read(write(tmp_path, data)) == ([], {})


def test_line_ends_inside_quotes_stay(tmp_path: Path) -> None:
    """RFC 4180; and the line of a later problem counts them."""
    path = write(tmp_path, 'id,note\r\n1,"two\r\nlines, ""quoted"""\r\n2\r\n3,z\r\n')

    rows, problems = read(path)

    assert rows == [["1", 'two\r\nlines, "quoted"'], [None, None], ["3", "z"]]
    assert problems == {2: "line 4: 1 cell where the header has 2: 2"}


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_quote_that_is_never_closed_is_a_problem(tmp_path: Path, end: str) -> None:
    """The rest of the file must not quietly become one cell."""
    path = write(tmp_path, 'id,note\n1,a\n2,"b\n3,c' + end)

    rows, problems = read(path)

    assert rows == [["1", "a"], [None, None]]
    assert problems[2].startswith("line 3: a quote that is never closed: 2,b\\n3,c")


def test_a_quote_that_is_never_closed_swallows_a_megabyte_at_most(tmp_path: Path) -> None:
    """Then reading goes on with the next line."""
    lines = [f"{row},{'x' * 90}" for row in range(1, 30_001)]
    lines[9] = '10,"' + "x" * 90
    path = write(tmp_path, "id,text\n" + "\n".join(lines) + "\n")

    rows, problems = read(path)

    assert list(problems) == [10]
    assert problems[10].startswith("line 11: a cell of more than 1,048,576 characters")
    assert rows[-1][0] == "30000"
    assert [row[0] for row in rows[:9]] == [str(row) for row in range(1, 10)]


def test_a_long_cell_is_fine(tmp_path: Path) -> None:
    """Longer than the standard library's first limit, also when another row is ragged."""
    long = "y" * 500_000
    path = write(tmp_path, f"id,text\n1,{long}\n2\n")

    assert read(path)[0][0] == ["1", long]


CELLS = st.text(st.sampled_from('a0,"\n\r é€ \x00\t;'), max_size=6)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=0, max_size=20)
)


@IN_ONE_FOLDER
@given(table=TABLES, quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), rows=st.integers(1, 30))
def test_what_the_csv_module_writes_comes_back(tmp_path: Path, table: list[list[str]], quoting: int, rows: int) -> None:
    """Python's csv module as the judge: every cell the same, empty ones null."""
    width = len(table[0]) if table else 2
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting)  # type: ignore[arg-type]  # one of the constants
    writer.writerow([f"c{place}" for place in range(width)])
    writer.writerows(table)

    found = read(write(tmp_path, text.getvalue()), rows)

    assert found == ([[cell or None for cell in row] for row in table], {})


@IN_ONE_FOLDER
@given(
    data=st.lists(st.sampled_from([b"a", b",", b'"', b"\n", b"\r", b"\r\n", b" ", b"\xff", b"\xc3\xa9"]), max_size=40)
)
def test_both_readers_say_the_same(tmp_path: Path, data: list[bytes]) -> None:
    """Whatever follows the header, the fast reader with its stand-in equals the exact one alone."""
    path = write(tmp_path, b"x,y\n" + b"".join(data))
    source = CsvSource(path)

    assert read(path) == gather(exact_batches(path, source.schema, skip=0, rows=7))
