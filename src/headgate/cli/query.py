"""`headgate query`: the answer of a query over files, once."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from headgate.api.evaluate import catalog_of
from headgate.bounded.answer import answer
from headgate.cli.engine import check_paths, engine, opened, progress
from headgate.cli.inputs import paths_by_name, query_text
from headgate.cli.rows import output_format, print_csv, print_json, print_table, write_files
from headgate.errors import SourceError
from headgate.lang import parse_query
from headgate.plan import Strategy, bind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def answer_query(
    sql: str,
    streams: list[str],
    tables: list[str],
    strategy: Strategy | None,
    limit: int,
    format_: str,
    output: str | None,
) -> None:
    """Prints the answer, or writes it to `output`."""
    # All errors that can be found without Spark come before it is started.
    query = parse_query(query_text(sql))
    paths, rows_at = paths_by_name(streams), paths_by_name(tables, "--table")
    check_paths(paths | rows_at)
    if output is not None:
        _check_output(output)
    with engine() as spark:
        frames = opened(spark, paths | rows_at)
        rows = answer(bind(query, catalog_of(frames, rows_at)), frames, strategy)
        if output is not None:
            with progress("computing"):
                write_files(rows, output)
            print(f"wrote {output}", file=sys.stderr)
        else:
            _show(rows, limit, format_)


def _show(rows: DataFrame, limit: int, format_: str) -> None:
    match format_:
        case "csv":
            print_csv(rows, sys.stdout)
        case "json":
            print_json(rows, sys.stdout)
        case _:
            print_table(rows, limit, sys.stdout)


def _check_output(path: str) -> None:
    output_format(path)
    if os.path.exists(path):
        raise SourceError(f"--output {path}: it exists already; remove it or choose another name")
