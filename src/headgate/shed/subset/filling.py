"""Gaps between answers, filled by interpolation. Only `run.results` shows this; nothing of it is delivered."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from headgate.plan.logical.nodes import SAMPLING_RATE, WINDOW_END, WINDOW_START
from headgate.shed.subset.dropped import WindowRun
from headgate.shed.subset.fill import FILLED
from headgate.sql.text import THESE, bound, ddl, floor_div, literal, own, position, queried, quoted
from headgate.windows import Sliding

_K, _NEXT, _AT = own("k"), own("next"), own("at")


def filled(answers: DataFrame, groups: Sequence[str], window: Sliding, dropped: Sequence[WindowRun]) -> DataFrame:
    """Answers, and between two of a group a row for each window, marked as `filled`, if all windows there were dropped.

    Where one of them was not, the group had no tuples in it, and nothing is known of its neighbours. Numbers lie on a
    line between the two answers, over where the window starts; anything else is NULL.
    """
    delivered = queried(answers, f"SELECT *, false AS {FILLED} FROM {THESE}")
    if not dropped:
        return delivered
    place = position(answers, WINDOW_START)
    number = floor_div(f"{place} - {literal(window.origin)}", window.slide)
    numbers = [f.name for f in answers.schema if isinstance(f.dataType, T.NumericType) and f.name not in groups]
    nexts = ", ".join([str(_K), *map(quoted, numbers)])
    by = ", ".join(map(quoted, groups)) or "true"
    followed = (
        f"SELECT *, lead(struct({nexts})) OVER (PARTITION BY {by} ORDER BY {_K}) AS {_NEXT}"
        f" FROM (SELECT *, {number} AS {_K} FROM {THESE})"
    )
    runs = ", ".join(f"struct({first}L, {last}L)" for first, last in dropped)
    gap = f"{_K} + 1L, {_NEXT}.{_K} - 1L"
    whole = f"array_contains(array({runs}), struct({gap}))"
    missing = f"SELECT *, explode(sequence({gap})) AS {_AT} FROM ({followed}) WHERE {whole}"
    columns = [_column(answers, f, groups, window) for f in answers.schema]
    return delivered.union(queried(answers, f"SELECT {', '.join(columns)}, true FROM ({missing})"))


def _column(answers: DataFrame, field: T.StructField, groups: Sequence[str], window: Sliding) -> str:
    """A column of a filled row, as SQL."""
    name, type_ = quoted(field.name), ddl(field.dataType)
    start = f"{_AT} * {literal(window.slide)} + {literal(window.origin)}"
    match field.name:
        case _ if field.name in groups:
            return name
        case str() if field.name == WINDOW_START:
            return f"CAST({bound(answers, WINDOW_START, start)} AS {type_})"
        case str() if field.name == WINDOW_END:
            return f"CAST({bound(answers, WINDOW_START, f'{start} + {literal(window.range)}')} AS {type_})"
        case str() if field.name == SAMPLING_RATE:
            return "0D"  # None of its tuples is in it.
    if not isinstance(field.dataType, T.NumericType):
        return f"CAST(NULL AS {type_})"
    way = f"({_AT} - {_K}) / ({_NEXT}.{_K} - {_K})"
    on_line = f"CAST({name} AS DOUBLE) + (CAST({_NEXT}.{name} AS DOUBLE) - CAST({name} AS DOUBLE)) * {way}"
    return f"CAST({f'round({on_line})' if isinstance(field.dataType, T.IntegralType) else on_line} AS {type_})"
