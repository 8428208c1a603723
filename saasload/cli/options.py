"""The options that several commands have, with their words."""

from pathlib import Path
from typing import Annotated

import typer

DEFAULT_RUNS = Path(".saasload/runs")

Source = Annotated[Path, typer.Argument(help="A Parquet or CSV file.")]
To = Annotated[
    str | None,
    typer.Option(help="The target's address, or its name in saasload.toml. Without it: an embedded mock server."),
]
Profile = Annotated[str | None, typer.Option(help="The platform's profile: a name or a .toml file.")]
Entity = Annotated[str, typer.Option(help="What a row becomes there.")]
Companies = Annotated[
    str, typer.Option(help="all, a list 1001,1002, @FILE, or a query such as 'Status = 1 and Country = \"NL\"'.")
]
Partitions = Annotated[int | None, typer.Option(help="Take the first N of those companies.")]
PartitionBy = Annotated[
    str | None, typer.Option(help="The column that names each row's company. Without one, rows are dealt evenly.")
]
PerCompany = Annotated[int, typer.Option(help="Calls on the wire at once in one company.")]
RowsPerCall = Annotated[int | None, typer.Option(help="Fewer rows a call than the profile allows.")]
Field = Annotated[
    list[str] | None, typer.Option(help="FIELD=COLUMN: fill a field from a column of another name. Repeatable.")
]
SourceFormat = Annotated[str | None, typer.Option("--format", help="parquet or csv, where the file does not tell.")]
MetricsPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Serve Prometheus metrics on this port of 127.0.0.1; 0 takes a free one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary; errors only.")]
