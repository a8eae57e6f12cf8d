"""What tests share: schemas, streams as lists of tuples, and a comparison of answers that ignores their order."""

from __future__ import annotations

import math
import os
import random
import zlib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
Schema = Mapping[str, str]
#: How many new random cases there are of each kind, or 0: one that is the same in every run.
FUZZ = int(os.environ.get("HEADGATE_FUZZ", "HEADGATE_SEED" in os.environ))


def seeds(usual: int | str) -> list[int]:
    """What the random cases of a test are drawn from: the usual seed, or new ones; HEADGATE_SEED runs one again.

    A text stands for a seed of its own, so that no two tests that are named by one look at the same case.
    """
    if "HEADGATE_SEED" in os.environ:
        return [int(os.environ["HEADGATE_SEED"])]
    return [random.SystemRandom().getrandbits(32) for _ in range(FUZZ)] or [
        usual if isinstance(usual, int) else zlib.crc32(usual.encode())
    ]


def frame(spark: SparkSession, rows: Sequence[Row], schema: Schema) -> DataFrame:
    """The tuples as a DataFrame, in their order, over as many partitions as there are cores."""
    ddl = ", ".join(f"`{name.replace('`', '``')}` {type_}" for name, type_ in schema.items())
    return spark.createDataFrame([tuple(row[c] for c in schema) for row in rows], ddl)


def collected(df: DataFrame) -> list[Row]:
    """The rows of an answer as dicts, without the sampling rate, which has to be 1."""
    rows = [row.asDict(recursive=True) for row in df.collect()]
    assert all(row.pop("sampling_rate") == 1.0 for row in rows)
    return rows


def assert_same(actual: Sequence[Row], expected: Sequence[Row], tolerance: float = 1e-9) -> None:
    """Fails unless both answers have the same rows as often, whatever their order; numbers may differ by rounding."""
    assert [set(row) for row in actual[:1]] == [set(row) for row in expected[:1]]
    columns = sorted(expected[0]) if expected else []
    left, right = (sorted(rows, key=lambda row: _order(row, columns)) for rows in (actual, expected))
    for got, wanted in zip(left, right, strict=False):
        assert _close(got, wanted, tolerance), f"\n got    {got}\n wanted {wanted}"
    assert len(left) == len(right)


def _order(row: Row, columns: Sequence[str]) -> list[tuple[bool, str]]:
    # Keys and windows first, so that a last digit elsewhere never decides which rows are compared.
    return [_text(row[c]) for c in sorted(columns, key=lambda c: (not c.startswith(("key", "window")), c))]


def _text(value: Any) -> tuple[bool, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value is not None, str(value)
    whole = math.isfinite(value) and value == int(value)
    return True, f"{int(value):+030d}" if whole else f"{float(value):+.6e}"


def _close(got: Any, wanted: Any, tolerance: float) -> bool:
    match got, wanted:
        case dict(), dict():
            return got.keys() == wanted.keys() and all(_close(got[k], wanted[k], tolerance) for k in got)
        case list(), list():
            return len(got) == len(wanted) and all(_close(g, w, tolerance) for g, w in zip(got, wanted, strict=True))
        case ((datetime() | date()), (datetime() | date())):
            return bool(got == wanted)
        case (bool(), _) | (_, bool()) | (None, _) | (_, None) | (str(), _):
            return bool(got == wanted)
        case _:
            if math.isnan(float(got)) or math.isnan(float(wanted)):
                return math.isnan(float(got)) and math.isnan(float(wanted))
            if isinstance(got, Decimal):  # Spark rounds decimals to the digits of their type.
                tolerance = max(tolerance, 10.0 ** int(got.as_tuple().exponent))
            return math.isclose(float(got), float(wanted), rel_tol=tolerance, abs_tol=tolerance)
