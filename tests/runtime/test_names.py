"""Names of columns, queries and streams may be anything: they say what is what, and never become part of a text."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support import Row, assert_same, collected, frame

import headgate as hg
from headgate import reference
from headgate.errors import BindError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.plan import Strategy
    from headgate.shed.policy import Policy

#: Names of columns: what SQL would read otherwise, what operators call columns of their own, and what only looks alike.
COLUMNS = [
    *("a.b", "a b", "back`tick", '"quoted"', "it's", "[1]", "{x}", "naïve", "日本", "a-b", "1st", "x/*y*/", "--", "$"),
    *("%s", "a\\b", "a\tb", "🎉", "?", ":x", "select", "FROM", "window", "order", "array", "struct", "timestamp"),
    *("NULL", "end", "filter", "group", "rows", "lowest", "answers", "tuples", "i", "_side", "_first", "_last", "_e"),
    *("_hg_rows", "_hg_x", "_hg_place", "_hg_pane", "_hg_wid", "_hg_k0", "_hg_start", "_hg_at", "_hg_value", "_hg_own"),
    *("_hg_id", "_hg_piece", "_hg_before", "_hg_now", "_hg_until", "_hg_class", "_hg_met0", "_hg_key", "_hg_of"),
    *("_hg_left_bucket", "k0_string", "k0_int", "sum0_bigint"),
]
#: Names of queries and streams are words of any language.
WORDS = [
    "select",
    "from",
    "window",
    "größe",
    "日本",
    "_hg_rows",
    "_hg_these",
    "figures",
    "answers",
    "rows",
    "Null",
    "ab_c",
    "c",
]


class Names:
    """A name for everything in a query, none of which is alike but for its case."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.columns = random.sample(COLUMNS, 12)
        self.words = random.sample(WORDS, len(WORDS))

    def __call__(self, sql: str) -> str:
        """The text with its names: capitals are streams, %0 and so on columns, or, in the other case, ^0."""
        for i, name in reversed([*enumerate(self.columns)]):
            sql = sql.replace(f"%{i}", quoted(name)).replace(f"^{i}", quoted(name.swapcase()))
        return sql.replace("STREAM", quoted(self.words[0])).replace("OTHER", quoted(self.words[1]))

    @property
    def schema(self) -> dict[str, str]:
        ts, k, v, s = self.columns[:4]
        return {ts: "int", k: "string", v: "int", s: f"struct<{quoted(k)}:int>"}

    def rows(self) -> list[Row]:
        random, (ts, k, v, s) = Random(1), self.columns[:4]
        return [
            {ts: at, k: random.choice(["x", "y", None]), v: random.randrange(5), s: {k: random.randrange(3)}}
            for at in random.sample(range(60), 40)
        ]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


#: %0 is when, %1 a key, %2 a value, %3 a struct; others are names of answers.
SUMS = "count(*) AS %4, sum(%2) AS %5, max(%2) - min(^2) AS %6"
QUERIES = {
    "sliding": f"SELECT %1, {SUMS} [RANGE 10, SLIDE 5, WA %0] FROM STREAM GROUP BY %1",
    "tumbling": f"SELECT %2 + 1 AS %7, {SUMS} [RANGE 10, WA ^0] FROM STREAM WHERE %2 > 0 GROUP BY %7",
    "gaps": "SELECT %1, %2, count(%2) AS %4 [RANGE 3, SLIDE 8, WA %0] FROM STREAM GROUP BY 1, 2",
    "landmark": f"SELECT %1, {SUMS} [RANGE ALL, SLIDE 10, WA %0] FROM STREAM GROUP BY %1",
    "values": "SELECT %1, median(%2) AS %4, count(DISTINCT %2) AS %5, mode(%2) AS %6 [RANGE 10, SLIDE 5, WA %0]"
    " FROM STREAM GROUP BY %1",
    "moments": "SELECT first(%2) AS %4, var_pop(%2) AS %5, sum(%2) FILTER (WHERE %1 = 'x') AS %6"
    " [RANGE 9, SLIDE 3, WA %0] FROM STREAM",
    "rows": "SELECT %1, count(*) AS %4 [RANGE 6 rows, SLIDE 3 rows] FROM STREAM GROUP BY %1",
    "partitioned": "SELECT %1, sum(%2) AS %4 [RANGE 4 rows, SLIDE 2 rows, PA %1] FROM STREAM",
    "every tuple": "SELECT count(*) AS %4 [RANGE 10, RATTR %0, SLIDE 3 rows, SATTR row_num] FROM STREAM",
    "by rank": "SELECT %1, max(%2) AS %4 [RANGE 10, RATTR %0, SLIDE 3 rows, SATTR rank(%0)] FROM STREAM GROUP BY %1",
    "distinct": "SELECT DISTINCT ON (%1) %0, %1 AS %4, %2 FROM STREAM [RANGE 5, WA %0]",
    "join": "SELECT l.%0 AS %4, r.%0 AS %5, l.%2, r.^1 FROM STREAM AS l [RANGE 4, WA %0], STREAM AS r [RANGE 3, WA %0]"
    " WHERE l.%1 = r.%1",
    "tumbling join": "SELECT STREAM.%0 AS %4, OTHER.%2 AS %5 FROM STREAM, OTHER [RANGE TUMBLING 5, WA %0]"
    " WHERE STREAM.%1 = OTHER.%1",
    "nested": "SELECT max(%8) AS %4 [RANGE 20, SLIDE 10] FROM"
    " (SELECT %1, count(*) AS %8 [RANGE 5, WA %0] FROM STREAM GROUP BY %1) WHERE %8 > 0",
    "over a join": "SELECT %4, count(*) AS %6 [RANGE 10, WA %9] FROM (SELECT l.%0 AS %9, l.%2 AS %4 FROM"
    " STREAM AS l [RANGE 4, WA %0], STREAM AS r [RANGE 3, WA %0] WHERE l.%2 = r.%2) GROUP BY %4",
    "plain": "SELECT %0, upper(%1) AS %4, %3 AS %5 FROM STREAM WHERE %2 > 1",
    "union": "SELECT %1, count(*) AS %4 [RANGE 10, WA %0] FROM STREAM UNION OTHER GROUP BY %1",
}
STRATEGIES: dict[str, Strategy] = {"sliding": "eager", "by rank": "eager", "landmark": "eager", "every tuple": "eager"}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(3))
def test_any_name_will_do_in_a_flow(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    names = Names(seed)
    rows, schema = names.rows(), names.schema
    streams = names.words[:2]
    df = frame(spark, rows, schema)
    flow = hg.Flow(spark, "names", str(tmp_path))
    for stream in streams:
        flow.stream(stream, df)
    queries = {
        f"{word}{i}": names(sql)
        for i, (word, sql) in enumerate(zip([*names.words, *names.words], QUERIES.values(), strict=False))
    }
    for number, (name, sql) in enumerate(queries.items()):
        flow.query(name, sql, strategy=STRATEGIES.get([*QUERIES][number]))
    run = flow.run_available()
    for what, (name, sql) in zip(QUERIES, queries.items(), strict=True):
        expected = reference.evaluate(sql, dict.fromkeys(streams, schema), (), **dict.fromkeys(streams, rows))
        assert expected, what
        answer = hg.evaluate(sql, spark, STRATEGIES.get(what), **dict.fromkeys(streams, df))
        assert_same(collected(answer), expected)
        assert_same(collected(run.results(name)), expected)


JOINED = (
    "SELECT l.%0 AS %4, r.%0 AS %5, l.%2 AS %6 FROM STREAM AS l [RANGE 4, WA %0], STREAM AS r [RANGE 3, WA %0]"
    " WHERE l.%1 = r.%1"
)
#: Queries by what may be left out of them, which is nothing here, or what the seed says.
SHED: dict[str, tuple[str, Policy]] = {
    "estimated": (QUERIES["sliding"], hg.estimate(rate=1.0)),
    "filtered": (QUERIES["tumbling"], hg.estimate(rate=1.0)),
    "quantile": ("SELECT %1, median(%2) AS %4 [RANGE 10, WA %0] FROM STREAM GROUP BY %1", hg.estimate(rate=1.0)),
    "tuples": ("SELECT %0, %2 AS %4 FROM STREAM WHERE %2 > 1", hg.estimate(rate=1.0)),
    "under overload": (QUERIES["gaps"], hg.estimate()),
    "windows": (QUERIES["sliding"], hg.subset(gap=2, drop=0.5)),
    "groups": (QUERIES["tumbling"], hg.subset(by="group", drop=0.5)),
    "pairs": (JOINED, hg.subset(drop=0.5, max_state=30)),
    "sampled pairs": (JOINED, hg.sample(rate=1.0)),
    "over pairs": (f"SELECT %6, count(*) AS %7 [RANGE 10, WA %4] FROM ({JOINED}) GROUP BY %6", hg.estimate(rate=1.0)),
    "nested": (QUERIES["nested"], hg.exact()),
    "looked up": (
        "SELECT t.%1 AS %4, count(*) AS %5 [RANGE 10, WA s.%0] FROM STREAM AS s JOIN OTHER AS t"
        " ON s.%2 = t.%2 GROUP BY t.%1",
        hg.exact(),
    ),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", range(2))
def test_any_name_will_do_where_something_is_left_out(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    names = Names(100 + seed)
    rows, schema, (stream, table, *words) = names.rows(), names.schema, names.words
    flow = hg.Flow(spark, "names", str(tmp_path))
    flow.stream(stream, frame(spark, rows, schema), progress=hg.progress(f"{quoted(names.columns[0])}", slack_rows=3))
    flow.table(table, frame(spark, rows[:5], schema))
    queries = {f"{words[i % len(words)]}{i}": (names(sql), policy) for i, (sql, policy) in enumerate(SHED.values())}
    for name, (sql, policy) in queries.items():
        flow.query(name, sql, policy=policy)
    for name in [*queries][:7]:
        flow.sink(name, hg.sinks.memory(), output="shed")
    run = flow.run_available(overload=hg.overload("5 seconds"))
    for what, (name, (sql, policy)) in zip(SHED, queries.items(), strict=True):
        streams = {stream: schema, table: schema}
        expected = reference.evaluate(sql, streams, tables=[table], **{stream: rows, table: rows[:5]})
        assert expected, what
        answers = [row.asDict(recursive=True) for row in run.results(name).collect()]
        found = [{column: row[column] for column in expected[0]} for row in answers]
        if isinstance(policy, type(hg.subset())):
            assert [row for row in found if row not in expected] == [], what
            assert len(found) < len(expected), what
        else:
            assert_same(found, expected)
    assert run.status()["shedding"]["values"]
    assert run.explain()


def test_what_is_kept_with_tuples_has_names_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    flow = hg.Flow(spark, "names", str(tmp_path))
    with pytest.raises(
        BindError, match="stream S: _hg_Coin is what Headgate calls a column of its own: rename that one"
    ):
        flow.stream("S", spark.range(1).toDF("_hg_Coin"))
