"""Columns may have any name, also those that an operator might think of for itself."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.support import assert_same, collected, frame

import headgate as hg
from headgate import reference

SCHEMA = {"at": "int", "_id": "int", "_x": "int", "a b": "string", "row": "int", "window": "int", "a.b": "int"}
ROWS = [dict(zip(SCHEMA, (i, i % 3, i * 2, "u'v", i % 2, 7, i), strict=True)) for i in range(30)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT _id, sum(_x) AS s, max(`a b`) AS m, sum(`a.b`) AS d [RANGE 6 rows, SLIDE 4 rows] FROM S GROUP BY _id",
        "SELECT `a b`, row, count(*) AS `odd name` [RANGE 6, SLIDE 4, WA at] FROM S WHERE `a b` = 'u''v' GROUP BY 1, 2",
        "SELECT window, count(*) AS n [RANGE TUMBLING 10, WA at] FROM S GROUP BY window",
        "SELECT l.`a.b` AS x, r._id FROM S AS l [RANGE 2, WA at], S AS r [RANGE 3, WA at] WHERE l._x = r._x",
    ],
)
def test_any_name_will_do(spark: SparkSession, sql: str) -> None:
    expected = reference.evaluate(sql, {"S": SCHEMA}, S=ROWS)
    assert expected
    assert_same(collected(hg.evaluate(sql, S=frame(spark, ROWS, SCHEMA))), expected)
