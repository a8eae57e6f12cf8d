"""Scripts as flows: every kind of stream, query and sink, and one clear error for what does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support import assert_same, collected

import headgate as hg
from headgate.api.scripts import check_script, flow_of
from headgate.connect.packets.packets import PacketSource
from headgate.errors import Error, ProgressError, ScriptError, SourceError, WindowError
from headgate.lang import parse_script
from headgate.plan.logical.script import Script, bind_script

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = "ts INT, k STRING, v INT"
SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10, SLIDE 5] FROM S GROUP BY k"
EARLY = [(1, "a", 1), (4, "b", 2), (12, "a", 3)]
LATER = [(31, "b", 4), (2, "a", 5), (40, "a", 6)]


def script(text: str) -> Script:
    return bind_script(parse_script(text))


def stream(place: str, progress: str = "PROGRESS ON TS WITHIN 5") -> str:
    return f"CREATE STREAM S FROM {place} SCHEMA (ts INT, k STRING, v INT) {progress};"


def query(properties: str = "") -> str:
    return f"CREATE QUERY q {properties} AS {SQL};"


@pytest.mark.parametrize("format_", ["parquet", "CSV", "json"])
def test_files_come_in_and_answers_go_out(spark: SparkSession, tmp_path: Path, format_: str) -> None:
    header = ", header = true" if format_ == "CSV" else ""
    for rows in (EARLY, LATER):
        part = spark.createDataFrame(rows, SCHEMA).coalesce(1)
        part.write.mode("append").format(format_).option("header", True).save(f"{tmp_path}/in")
    flow = flow_of(
        script(
            stream(f"{format_} '{tmp_path}/in' OPTIONS (max_files_per_batch = 1{header})")
            + query("WITH (strategy = 'paned', shed = 'exact')")
            + f"CREATE SINK FOR q INTO parquet '{tmp_path}/out';"
            + f"CREATE SINK FOR q LATE INTO parquet OPTIONS (path = '{tmp_path}/late');"
            + f"CREATE SINK FOR q INTO json '{tmp_path}/json' OPTIONS (compression = 'none');"
        ),
        spark,
        "test",
        f"{tmp_path}/checkpoint",
    )
    run = flow.run_available()
    assert run.status()["batch"] == 1
    # The second file lets the windows up to 35 go; in the first, 12 lets go those up to 5, so (2, a, 5) is late.
    in_time = spark.createDataFrame([*EARLY, *(row for row in LATER if row[0] > 2)], SCHEMA)
    expected = collected(hg.evaluate(SQL.replace("SLIDE 5", "SLIDE 5, WA ts"), S=in_time).where("window_end <= 35"))
    assert_same(collected(spark.read.parquet(f"{tmp_path}/out")), expected)
    assert_same(collected(spark.read.json(f"{tmp_path}/json")), expected)
    assert [tuple(row) for row in spark.read.parquet(f"{tmp_path}/late").collect()] == [(2, "a", 5)]


def test_packets(spark: SparkSession, tmp_path: Path) -> None:
    sql = "SELECT proto, count(*) AS n, sum(len) AS bytes [RANGE 20 seconds, SLIDE 10 seconds, WA ts] FROM Main"
    text = f"""
        CREATE STREAM Main FROM packets OPTIONS (rate = 100, rows = 3000, rows_per_batch = 1000, hosts = 9, seed = 4)
          SCHEMA (ts TIMESTAMP, srcIP STRING, destIP STRING, srcPort INT, destPort INT, len INT, proto STRING,
                  flags STRING)
          PROGRESS ON ts ORDERED;
        CREATE QUERY sizes AS {sql} GROUP BY proto;
        CREATE SINK FOR sizes INTO memory;
    """
    made = PacketSource(rate=100, hosts=9, seed=4).read(spark, 0, 3000)
    run = flow_of(script(text), spark, "test", str(tmp_path)).run_available()
    assert run.status()["rows"] == {"Main": 3000}
    exact = hg.evaluate(f"{sql} GROUP BY proto", Main=made).where("window_end < '2026-01-01 00:00:30'")
    assert_same(collected(run.results("sizes")), collected(exact))


def test_any_other_format_is_read_by_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "words.txt").write_text("one\ntwo\n")
    text = f"""
        CREATE STREAM Lines FROM text '{tmp_path}/in' OPTIONS (wholetext = false) SCHEMA (value STRING);
        CREATE QUERY long AS SELECT upper(value) AS word FROM Lines WHERE value > 'p';
    """
    run = flow_of(script(text), spark, "test", f"{tmp_path}/checkpoint").run_available()
    assert [row.word for row in run.results("long").collect()] == ["TWO"]


def test_a_format_with_columns_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        CREATE STREAM Ticks FROM rate OPTIONS (rowsPerSecond = 10) SCHEMA (timestamp TIMESTAMP, value {})
          PROGRESS ON timestamp ORDERED;
        CREATE QUERY n AS SELECT count(*) AS n [RANGE 1 second] FROM Ticks;
    """
    flow = flow_of(script(text.format("INT")), spark, "test", str(tmp_path))
    assert "columns   timestamp timestamp (1 of 2)" in flow.explain()
    with pytest.raises(Error, match=r"^stream Ticks: .*valu"):
        flow_of(script(text.format("INT, valu INT")), spark, "test", str(tmp_path))


def test_a_format_that_spark_does_not_know(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Error, match=r"^stream S: .*carrier_pigeon"):
        flow_of(script(stream("carrier_pigeon") + query()), spark, "test", str(tmp_path))


def test_a_missing_path_is_told_when_the_flow_starts(spark: SparkSession, tmp_path: Path) -> None:
    flow = flow_of(script(stream(f"parquet '{tmp_path}/nowhere'") + query()), spark, "test", f"{tmp_path}/checkpoint")
    with pytest.raises(SourceError, match="nowhere"):
        flow.run_available()


def test_names_inside_of_structs_keep_their_letters(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text('{"at": {"srcIP": "10.0.0.1"}}\n')
    text = f"""
        CREATE STREAM S FROM json '{tmp_path}/in' SCHEMA (at STRUCT<srcIP: STRING>);
        CREATE QUERY q AS SELECT at.srcIP AS host FROM S;
    """
    run = flow_of(script(text), spark, "test", f"{tmp_path}/checkpoint").run_available()
    assert [row.host for row in run.results("q").collect()] == ["10.0.0.1"]


FILES = stream("parquet 'in'")
SINK = "CREATE SINK FOR q"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (FILES, ScriptError, "the script has no query to run: add CREATE QUERY"),
        # streams
        (stream("parquet") + query(), ScriptError, "stream S: FROM parquet needs a path"),
        (
            stream("csv 'in' OPTIONS (max_files_per_batch = 'x')") + query(),
            ScriptError,
            "stream S: max_files_per_batch = 'x' has to be a whole number",
        ),
        (
            stream("csv 'in' OPTIONS (max_files_per_batch = 0)") + query(),
            ScriptError,
            "stream S: max_files_per_batch=0: give a whole number",
        ),
        (
            stream("csv 'in' OPTIONS (seperator = ';')") + query(),
            ScriptError,
            "stream S: unknown option seperator: did you mean sep",
        ),
        (stream("json 'in' OPTIONS (mode = 'x')") + query(), ScriptError, "stream S: mode='x': give PERMISSIVE"),
        (stream("text 'in' OPTIONS (wholetxt = 1)") + query(), ScriptError, "stream S: unknown option wholetxt: did"),
        (stream("csv 'in' OPTIONS (path = 'x')") + query(), ScriptError, "stream S: FROM csv has two paths"),
        (stream("csv 'in' OPTIONS (schema = 'x')") + query(), ScriptError, "stream S: unknown option schema"),
        (
            FILES + "CREATE TABLE t FROM csv 'in' OPTIONS (max_files_per_batch = 1) SCHEMA (k STRING);" + query(),
            ScriptError,
            "table t: unknown option max_files_per_batch",
        ),
        (stream("packets") + query(), ScriptError, r"stream S: packets have .*: write SCHEMA \(ts TIMESTAMP, srcIP"),
        (stream("packets OPTIONS (rat = 5)") + query(), ScriptError, "stream S: unknown option rat: did you mean rate"),
        (stream("packets OPTIONS (rate = '5')") + query(), ScriptError, "stream S: rate = '5' has to be a number"),
        (stream("packets OPTIONS (rate = true)") + query(), ScriptError, "stream S: rate = True has to be a number"),
        (stream("packets OPTIONS (hosts = 0)") + query(), ScriptError, "stream S: packets: hosts must lie between"),
        (
            stream("kafka", "PROGRESS ON ts WITHIN 5 seconds") + query(),
            ProgressError,
            "stream S: within for progress on ts is a time, but ts is int",
        ),
        # queries
        (
            FILES + query("WITH (shed = 'estimate', rate = 2)"),
            ScriptError,
            "query q: rate=2: give a share",
        ),
        (FILES + query("WITH (shed = 'estimate', gap = 2)"), ScriptError, "query q: unknown property gap"),
        (FILES + query("WITH (gap = 0, shed = 'subset')"), ScriptError, "query q: gap=0: give the number of answers"),
        (FILES + query("WITH (shed = 'subset', by = 'user')"), ScriptError, "query q: by='user': give 'window'"),
        (FILES + query("WITH (shed = 'some')"), ScriptError, "query q: unknown shed = 'some'"),
        (FILES + query("WITH (gap = 10)"), ScriptError, "query q: unknown property gap: there are strategy, shed"),
        (FILES + query("WITH (strategy = 'lazy')"), ScriptError, "query q: unknown strategy = 'lazy'"),
        (FILES + query("WITH (strategy = 3)"), ScriptError, "query q: strategy = 3 has to be a text in quotes"),
        (
            stream("parquet 'in'", "") + query().replace("SLIDE 5", "SLIDE 5, WA ts"),
            WindowError,
            "query q: ts does not progress",
        ),
        # sinks
        (FILES + query() + f"{SINK} INTO parquet;", ScriptError, "the sink for q: INTO parquet needs a path"),
        (
            FILES + query() + f"{SINK} INTO parquet 'x' OPTIONS (mode = 'append');",
            ScriptError,
            "the sink for q: unknown option mode",
        ),
        (
            FILES + query("WITH (shed = 'subset', fill = 'cubic')"),
            ScriptError,
            "query q: fill='cubic': give 'linear', or leave it out",
        ),
        (FILES + query("WITH (shed = 'estimate', fill = 'linear')"), ScriptError, "query q: unknown property fill"),
        (FILES + query() + f"{SINK} SHED INTO console;", hg.FlowError, "query q is answered exactly, so that nothing"),
        (
            FILES + query() + f"{SINK} INTO csv 'x' OPTIONS (headr = true);",
            ScriptError,
            "the sink for q: unknown option headr: did you mean header",
        ),
        (FILES + query() + f"{SINK} INTO json;", ScriptError, "the sink for q: path is missing"),
        (FILES + query() + f"{SINK} INTO console OPTIONS (rows = 0);", ScriptError, "the sink for q: rows=0: give a"),
        (FILES + query() + f"{SINK} INTO console 'x';", ScriptError, "the sink for q: console takes no path"),
        (
            FILES + query() + f"{SINK} LATE INTO console OPTIONS (rows = 'all');",
            ScriptError,
            "the sink for q: rows = 'all' has to be a whole number",
        ),
    ],
)
def test_what_does_not_run_is_told_without_spark(text: str, kind: type[Error], message: str) -> None:
    with pytest.raises(kind, match=f"^{message}"):
        check_script(script(text))
