"""Streams whose columns or progress are others at a restart: a flow goes on rightly, or says what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.support import assert_same

import headgate as hg
from headgate.errors import StateError
from headgate.spark.folder import Folder
from headgate.store.layout import sealed, whole
from headgate.testing import Driver, drive

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.progress import StreamProgress

pytestmark = pytest.mark.usefixtures("interpreted")
DDL = "ts INT, u INT, k STRING, v INT, router STRING, done BOOLEAN"
QUERIES = {
    "sums": "SELECT k, sum(v) AS s, max(v) AS hi [RANGE 20, SLIDE 10, WA ts] FROM S GROUP BY k",
    "middle": "SELECT median(v) AS m [RANGE 10, WA ts] FROM S",
    "first": "SELECT DISTINCT ON (k) ts, k FROM S [RANGE 5, WA ts]",
}
RULE = hg.progress("ts", within=5)


def driven(
    spark: SparkSession,
    folder: Path,
    ddl: str = DDL,
    rule: StreamProgress = RULE,
    queries: dict[str, str] = QUERIES,
    anew: bool = False,
) -> Driver:
    flow = hg.Flow(spark, "types", str(folder))
    flow.stream("S", hg.sources.files(str(folder / "in"), schema=ddl), progress=rule)
    for name, sql in queries.items():
        flow.query(name, sql, anew=anew)
    return drive(flow)


def run(spark: SparkSession, made: Driver, ddl: str = DDL) -> Driver:
    values = {"ts": "id * 3", "u": "id", "k": "id % 2", "v": "id % 7", "router": "id % 2", "done": "true"}
    types = dict(column.split(" ") for column in ddl.split(", "))
    rows = spark.range(10 * made.batches, 10 * made.batches + 10)
    typed = (f"CAST({values[name]} AS {type_}) AS {name}" for name, type_ in types.items())
    made.batch(S=rows.selectExpr(*typed))
    return made


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (
            "ts INT",
            "ts DOUBLE",
            "S: column ts is int in the checkpoint .*, and now it is double: .*sums, middle, first",
        ),
        ("ts INT", "ts DECIMAL(9,2)", r"S: column ts is int in the checkpoint .*, and now it is decimal\(9,2\)"),
        ("v INT", "v BIGINT", r"S: column v is int .* now it is bigint: .* \(sums, middle\) begin anew"),
        ("k STRING", "k INT", r"S: column k is string .* now it is int: .* \(sums, first\) begin anew"),
    ],
)
def test_a_type_that_has_changed_is_told(spark: SparkSession, tmp_path: Path, was: str, now: str, says: str) -> None:
    run(spark, driven(spark, tmp_path))
    ddl = DDL.replace(was, now)
    with pytest.raises(StateError, match=says):
        driven(spark, tmp_path, ddl)
    if not was.startswith("ts"):
        run(spark, driven(spark, tmp_path, ddl, anew=True), ddl)
    # What nobody uses may change.
    assert run(spark, driven(spark, tmp_path / "other", DDL)).batches == 1
    ddl = DDL.replace("u INT", "u STRING")
    assert run(spark, driven(spark, tmp_path / "other", ddl), ddl).batches == 2


def test_progress_on_another_column_is_told(spark: SparkSession, tmp_path: Path) -> None:
    queries = {"n": "SELECT count(*) AS n [RANGE 10, WA ts] FROM S"}
    run(spark, driven(spark, tmp_path, queries=queries))
    with pytest.raises(
        StateError, match=r"S: the checkpoint .* progress on the column ts \(int\).* to be on u \(int\)"
    ):
        driven(spark, tmp_path, rule=hg.progress("u", ordered=True), queries={"m": queries["n"].replace("ts", "u")})
    with pytest.raises(StateError, match=r"progress on the column ts \(int\).* to be on ts \(double\)"):
        driven(spark, tmp_path, DDL.replace("ts INT", "ts DOUBLE"), queries=queries, anew=True)


@pytest.mark.parametrize(
    ("before", "after", "reached"),
    [
        (RULE, hg.progress("ts", ordered=True), [22, 57]),
        (RULE, hg.progress("ts", slack_rows=2), [22, 51]),
        (RULE, hg.progress("ts", punctuated_by="done"), [22, 57]),
        (RULE, hg.progress("ts", within=5, by="router"), [22, 49]),
        (hg.progress("ts", within=5, by="router"), RULE, [19, 52]),
        (hg.progress("ts", slack_rows=2), hg.progress("ts", slack_rows=4), [21, 45]),
    ],
)
def test_another_promise_about_the_same_column_goes_on(
    spark: SparkSession, tmp_path: Path, before: StreamProgress, after: StreamProgress, reached: list[int]
) -> None:
    made = run(spark, driven(spark, tmp_path, rule=before))
    assert made.punctuation("S") == reached[0]
    made = driven(spark, tmp_path, rule=after)
    assert made.punctuation("S") == reached[0]
    assert run(spark, made).punctuation("S") == reached[1]


def test_a_checkpoint_of_before_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """One that tells no types, and has places of wall-clock times worked out in another way."""
    ddl = "ts TIMESTAMP_NTZ, k STRING, v INT"
    rule = hg.progress("ts", within="5 seconds")
    sql = "SELECT k, sum(v) AS s [RANGE 20 seconds, SLIDE 10 seconds] FROM S GROUP BY k"

    def batch(made: Driver) -> Driver:
        rows = spark.range(10 * made.batches, 10 * made.batches + 10).selectExpr(
            "TIMESTAMP_NTZ'2026-01-01' + make_dt_interval(0, 0, 0, id * 3) AS ts",
            "CAST(id % 2 AS STRING) AS k",
            "CAST(id % 7 AS INT) AS v",
        )
        made.batch(S=rows)
        return made

    batch(driven(spark, tmp_path / "old", ddl, rule, {"q": sql}))
    commits = Folder(spark, f"{tmp_path}/old/commits")
    name = commits.files()[-1].name
    document: Any = whole(commits.read(name))
    place = document["state"]["tables"][0]["feeds"][0][2]
    assert "INTERVAL" in place
    document["state"]["tables"][0]["feeds"][0][2] = (
        "timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', `ts`)"
    )
    commits.write(name, sealed(forgetful(document)))
    del document["progress"]["trackers"]["S"]["by"]
    made = batch(driven(spark, tmp_path / "old", ddl, rule, {"q": sql}))
    assert made.tables[0]["feeds"][0][2] == place
    expected = batch(batch(driven(spark, tmp_path / "new", ddl, rule, {"q": sql})))
    assert expected.answers("q")
    assert_same(made.answers("q"), expected.answers("q"))


def test_types_that_only_the_state_tells_are_told_too(spark: SparkSession, tmp_path: Path) -> None:
    """In a checkpoint of before."""
    run(spark, driven(spark, tmp_path, queries={"sums": QUERIES["sums"]}))
    commits = Folder(spark, f"{tmp_path}/commits")
    name = commits.files()[-1].name
    document: Any = whole(commits.read(name))
    commits.write(name, sealed(forgetful(document)))
    for was, now, what in (("k STRING", "k INT", "the keys"), ("v INT", "v DOUBLE", "its values")):
        with pytest.raises(StateError, match=f"query sums: {what} have other types in the checkpoint"):
            driven(spark, tmp_path, DDL.replace(was, now), queries={"sums": QUERIES["sums"]})


def forgetful(document: dict[str, Any]) -> dict[str, Any]:
    """A manifest that does not know the types of columns, as none did before."""
    document["queries"]["columns"], document["progress"]["promised"] = {}, {}
    return document
