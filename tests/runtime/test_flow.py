"""Flows as users run them: real streaming queries from sources to sinks, and one clear error where that cannot be."""

from __future__ import annotations

import csv
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.support import Row, assert_same, collected

import headgate as hg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.api.run import Run
    from headgate.connect.sources import Files
    from headgate.progress import StreamProgress

Tuple = tuple[int, str, int]
SCHEMA = "ts INT, k STRING, v INT"
COUNTS = "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS hi [RANGE 10, SLIDE 5, WA ts] FROM Main GROUP BY k"
TALLY = "SELECT count(*) AS n, sum(v) AS s [RANGE 5, SLIDE 5, WA ts] FROM Main"
WITHIN = hg.progress("ts", within=5)
#: Four files whose tuples are up to five below the highest: progress gets to 7, 19, 32 and 44.
FILES: list[list[Tuple]] = [
    [(1, "a", 3), (12, "b", 4), (8, "a", 1)],
    [(11, "a", 5), (24, "b", 9), (20, "a", 2)],
    [(37, "b", 6), (32, "a", 7), (33, "b", 2)],
    [(44, "b", 8), (49, "a", 1), (46, "a", 4)],
]
ROWS = [row for file in FILES for row in file]


def write(path: Path, format_: str, rows: Sequence[Sequence[Any]], columns: Sequence[str]) -> None:
    if format_ == "parquet":
        pq.write_table(pa.table(dict(zip(columns, map(_column, zip(*rows, strict=True)), strict=True))), path)
        return
    with path.open("w", newline="") as file:
        if format_ == "csv":
            csv.writer(file).writerows([columns, *rows])
        else:
            file.writelines(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows)


def _column(values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.int32()) if type(values[0]) is int else pa.array(values)


def arrive(
    folder: Path, files: Sequence[Sequence[Sequence[Any]]], format_: str = "parquet", columns: str = SCHEMA
) -> None:
    """More files in a folder, each there at once and as a whole, and later than those before it."""
    folder.mkdir(exist_ok=True)
    names = [column.split()[0] for column in columns.split(", ")]
    known = len(list(folder.iterdir()))
    for number, rows in enumerate(files, start=known):
        hidden = folder / f".{number}"
        write(hidden, format_, rows, names)
        os.utime(hidden, (1_700_000_000 + number,) * 2)
        hidden.rename(folder / f"{number}.{format_}")


def next_batch(run: Run, folder: Path, rows: Sequence[Sequence[Any]]) -> None:
    """One more file, and the batch that it makes."""
    before = run.status()["batch"]
    arrive(folder, [rows])
    until(run, lambda: bool(run.status()["batch"] > before))


def files(folder: Path, format_: str = "parquet", schema: str = SCHEMA) -> Files:
    header = {"header": True} if format_ == "csv" else {}
    return hg.sources.files(str(folder), format=format_, schema=schema, max_files_per_batch=1, **header)


def flow_over(spark: SparkSession, tmp: Path, queries: dict[str, str], source: Any = None) -> hg.Flow:
    """A flow over the stream Main, which is the files in `tmp`/in unless it is given."""
    flow = hg.Flow(spark, "test", str(tmp / "checkpoint"))
    flow.stream("Main", files(tmp / "in") if source is None else source, progress=WITHIN)
    for name, sql in queries.items():
        flow.query(name, sql)
    return flow


def table(spark: SparkSession, rows: Sequence[Any], schema: str = SCHEMA) -> DataFrame:
    return spark.createDataFrame(list(rows), schema)


def exact(sql: str, progress: object = None, **streams: DataFrame) -> list[Row]:
    """The exact answers of the windows that end where progress has got to, or before; of all of them without it."""
    answers = hg.evaluate(sql, **streams)  # type: ignore[arg-type]
    return collected(answers if progress is None else answers.where(F.col("window_end") <= F.lit(progress)))


@contextmanager
def told(kind: type[hg.Error], *words: str) -> Iterator[None]:
    """Fails unless an error of this kind is raised, one line that has these words."""
    with pytest.raises(kind) as caught:
        yield
    message = str(caught.value)
    assert "\n" not in message
    assert [word for word in words if word not in message] == [], message


def until(run: Run, holds: Callable[[], bool]) -> None:
    """Waits until something holds of a run, which must not end before."""
    give_up = time.monotonic() + 120
    while not holds():
        assert not run.await_termination(0.05), "the run has ended"
        assert time.monotonic() < give_up, run.status()


class TestSources:
    @pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
    def test_files_are_read_once_over_two_runs(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        arrive(tmp_path / "in", FILES[:2], format_)
        first = flow_over(spark, tmp_path, {"counts": COUNTS}, files(tmp_path / "in", format_)).run_available()
        assert_same(collected(first.results("counts")), exact(COUNTS, 19, Main=table(spark, FILES[0] + FILES[1])))
        assert [report.rows for report in first.reports] == [3, 3]
        assert (first.resumed_after, first.is_active) == (None, False)

        arrive(tmp_path / "in", FILES[2:], format_)
        second = flow_over(spark, tmp_path, {"counts": COUNTS}, files(tmp_path / "in", format_)).run_available()
        assert_same(collected(second.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))
        assert [report.rows for report in second.reports] == [3, 3]
        assert second.resumed_after == 1
        assert second.status()["rows"] == {"Main": len(ROWS)}
        assert sum(second.status()["late"].values()) == 0

    def test_the_schema_is_told_by_the_files(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", FILES)
        run = flow_over(spark, tmp_path, {"counts": COUNTS}, hg.sources.files(str(tmp_path / "in"))).run_available()
        assert_same(collected(run.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))

    def test_a_streaming_dataframe_of_the_caller(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", FILES)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2)
        source = reader.parquet(str(tmp_path / "in")).where("k <> 'b'").withColumn("v", F.expr("v * 10"))
        run = flow_over(spark, tmp_path, {"counts": COUNTS}, source).run_available()
        seen = table(spark, [(ts, k, v * 10) for ts, k, v in ROWS if k != "b"])
        assert_same(collected(run.results("counts")), exact(COUNTS, 44, Main=seen))
        assert len(run.reports) == 2

    @pytest.mark.parametrize("rule", [WITHIN, None])
    def test_a_bounded_dataframe_closes_all_windows_and_is_read_once(
        self, spark: SparkSession, tmp_path: Path, rule: StreamProgress | None
    ) -> None:
        for expected in ([len(ROWS)], []):
            flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
            flow.stream("Main", table(spark, ROWS), progress=rule)
            flow.query("counts", COUNTS)
            run = flow.run_available()
            assert_same(collected(run.results("counts")), exact(COUNTS, Main=table(spark, ROWS)))
            assert [report.rows for report in run.reports] == expected

    def test_generated_packets(self, spark: SparkSession, tmp_path: Path) -> None:
        source = hg.sources.packets(rate=10, hosts=5, disorder=3, rows=1000, rows_per_batch=400)
        window = "[RANGE 20 seconds, SLIDE 10 seconds, WA ts]"
        sql = f"SELECT srcIP, count(*) AS n, sum(len) AS s {window} FROM Main GROUP BY srcIP"
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", source, progress=hg.progress("ts", within="3 seconds"))
        flow.query("talkers", sql)
        run = flow.run_available()
        assert [report.rows for report in run.reports] == [400, 400, 200]
        packets = source.rows.read(spark, 0, 1000)
        latest = packets.agg(F.expr("max(ts) - INTERVAL 3 SECONDS")).collect()[0][0]
        assert_same(collected(run.results("talkers")), exact(sql, latest, Main=packets))

    def test_streams_of_all_kinds_in_one_query(self, spark: SparkSession, tmp_path: Path) -> None:
        sql = COUNTS.replace("Main", "Listed UNION Given UNION Known")
        arrive(tmp_path / "listed", FILES, "csv")
        arrive(tmp_path / "given", FILES[:3])
        given = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "given"))
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Given", given, progress=WITHIN)
        flow.stream("Listed", files(tmp_path / "listed", "csv"), progress=hg.progress("ts", within=7))
        flow.stream("Known", table(spark, ROWS), progress=WITHIN)
        flow.query("melded", sql)
        run = flow.run_available()
        given_rows = [row for file in FILES[:3] for row in file]
        streams = {"Listed": table(spark, ROWS), "Given": table(spark, given_rows), "Known": table(spark, ROWS)}
        assert_same(collected(run.results("melded")), exact(sql, 32, **streams))
        assert run.status()["rows"] == {"Listed": 12, "Given": 9, "Known": 12}

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_bad_tuples_are_counted_and_hurt_nothing(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        bad: list[list[tuple[Any, ...]]] = [[("soon", "a", 1), (21, "c", "many")], [(None, "b", 7)]]
        arrive(tmp_path / "in", [[*FILES[0], *bad[0]], FILES[1], [*FILES[2], *bad[1]], FILES[3]], format_)
        queries = {"counts": COUNTS, "large": "SELECT k, v FROM Main WHERE ts > 20"}
        flow = flow_over(spark, tmp_path, queries, files(tmp_path / "in", format_))
        flow.sink("Main", hg.sinks.memory(), output="bad")
        run = flow.run_available()
        assert_same(collected(run.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))
        assert_same(collected(run.results("large")), exact(queries["large"], Main=table(spark, ROWS)))
        assert (run.status()["bad"], run.status()["rows"]) == ({"Main": 3}, {"Main": len(ROWS) + 3})
        delivered = run.results("Main", output="bad").collect()
        assert len(delivered) == 3
        records = [row["record"] for row in delivered if row["record"] is not None]
        assert sorted("soon" in record for record in records) == [False, True]
        assert [row["v"] for row in delivered if row["record"] is None] == [7]

    def test_a_stream_without_progress_counts_malformed_records(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", [[*FILES[0], ("soon", "a", 1)]], "csv")
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", files(tmp_path / "in", "csv"))
        flow.query("all_of_them", "SELECT ts, k, v FROM Main")
        run = flow.run_available()
        assert sorted(row["ts"] for row in run.results("all_of_them").collect()) == [1, 8, 12]
        assert run.status()["bad"] == {"Main": 1}

    def test_a_malformed_record_stops_the_flow_if_asked(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", [*FILES[:2], [("soon", "a", 1)]], "csv")
        source = replace(files(tmp_path / "in", "csv"), options={"header": True, "mode": "FAILFAST"})
        with told(hg.SourceError, "2.csv"):
            flow_over(spark, tmp_path, {"counts": COUNTS}, source).run_available()
        write(tmp_path / "in" / "2.csv", "csv", FILES[2], ["ts", "k", "v"])
        run = flow_over(spark, tmp_path, {"counts": COUNTS}, source).run_available()
        rows = [row for file in FILES[:3] for row in file]
        assert_same(collected(run.results("counts")), exact(COUNTS, 32, Main=table(spark, rows)))


class TestRunning:
    def test_start_watch_stop_and_start_again(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", FILES[:1])
        run = flow_over(spark, tmp_path, {"counts": COUNTS}).start(trigger="100 milliseconds")
        until(run, lambda: run.status()["batch"] == 0)
        assert run.is_active
        assert not run.await_termination(0.01)
        assert run.status()["active"]
        arrive(tmp_path / "in", FILES[1:2])
        until(run, lambda: run.status()["batch"] == 1)
        status = run.status()
        assert status["name"] == "test"
        assert (status["progress"], status["closed"]) == ({"Main": 19}, {"counts": 15})
        assert status["rows"] == {"Main": 6}
        assert status["last_batch"]["rows"] == 3
        assert status["state"]["rows"] > 0
        assert_same(collected(run.results("counts")), exact(COUNTS, 19, Main=table(spark, FILES[0] + FILES[1])))

        run.stop()
        assert not run.is_active
        assert run.await_termination(1)
        run.stop()
        assert not run.status()["active"]
        assert run.status()["batch"] == 1

        arrive(tmp_path / "in", FILES[2:])
        again = flow_over(spark, tmp_path, {"counts": COUNTS}).start(trigger="available now")
        assert again.resumed_after == 1
        assert again.await_termination()
        assert [report.rows for report in again.reports] == [3, 3]
        assert_same(collected(again.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))

    def test_queries_come_and_go_while_it_runs(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", FILES[:1])
        run = flow_over(spark, tmp_path, {"counts": COUNTS, "goes": COUNTS}).start(trigger="100 milliseconds")
        until(run, lambda: run.status()["batch"] == 0)
        sums = "SELECT k, sum(v) AS s [RANGE 10, SLIDE 5, WA ts] FROM Main GROUP BY k"
        run.query("sums", sums, hg.sinks.parquet(str(tmp_path / "sums")))
        run.drop("goes")
        with pytest.raises(hg.Error, match="no query goes in the flow"):
            run.drop("goes")
        with pytest.raises(hg.Error, match="query wrong: unknown stream Mian: did you mean Main"):
            run.query("wrong", COUNTS.replace("Main", "Mian"))
        for rows in FILES[1:]:
            next_batch(run, tmp_path / "in", rows)
        run.stop()
        assert_same(collected(run.results("counts")), exact(COUNTS, 44, Main=table(spark, ROWS)))
        seen = max(row[0] for row in FILES[0])
        whole = [row for row in exact(sums, 44, Main=table(spark, ROWS)) if row["window_start"] > seen]
        assert whole
        assert_same(collected(run.results("sums")), whole)
        with pytest.raises(hg.Error, match="no query goes"):
            run.results("goes")

    def test_the_only_query_stays(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", FILES[:1])
        run = flow_over(spark, tmp_path, {"counts": COUNTS}).start()
        with pytest.raises(hg.Error, match="counts is the only query of flow test: stop the flow instead"):
            run.drop("counts")
        run.stop()
        over = "flow test does not run any more: change the flow, and start it again"
        with pytest.raises(hg.Error, match=over):
            run.drop("counts")
        with pytest.raises(hg.Error, match=over):
            run.query("more", COUNTS)

    def test_a_lull_closes_windows_without_another_tuple(self, spark: SparkSession, tmp_path: Path) -> None:
        sql = "SELECT count(*) AS n [RANGE 1 second, SLIDE 1 second, WA ts] FROM Main"
        schema = "ts TIMESTAMP, v INT"
        times = [f"2026-01-01 00:00:{s}" for s in ("01.100", "01.200", "02.900", "03.800")]
        arrive(tmp_path / "in", [[(t, 1) for t in times]], "csv", schema)
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        rule = hg.progress("ts", ordered=True, idle="1 second")
        flow.stream("Main", files(tmp_path / "in", "csv", schema), progress=rule)
        flow.query("tally", sql)
        run = flow.start(trigger="100 milliseconds")
        # At [3 s, 4 s) the flow stands until the source has been quiet for a second, and 0.2 s more.
        until(run, lambda: run.status().get("answers") == {"tally": 3})
        run.stop()
        rows = table(spark, [(t, 1) for t in times], "ts STRING, v INT").withColumn("ts", F.to_timestamp("ts"))
        assert_same(collected(run.results("tally")), exact(sql, Main=rows))

    def test_what_fails_in_a_run_is_raised_by_those_who_wait(self, spark: SparkSession, tmp_path: Path) -> None:
        def refuse(answers: DataFrame, batch: int) -> None:
            raise ValueError(f"no room for {answers.count()} rows of batch {batch}")

        arrive(tmp_path / "in", FILES)
        flow = flow_over(spark, tmp_path, {"counts": COUNTS})
        flow.sink("counts", refuse)
        with told(hg.FlowError, "the sink of query counts failed: ValueError: no room for ", " rows of batch 0"):
            flow.start().await_termination()


#: Each progress rule, and how far it lets a stream get with these three files.
MARKED = "ts INT, k STRING, mark BOOLEAN"
MARKED_FILES = [
    [(1, "a", False), (3, "b", False), (6, "a", False)],
    [(8, "b", True), (12, "a", False)],
    [(13, "a", False), (14, "b", False), (16, "a", False)],
]
RULES: dict[str, tuple[StreamProgress, int]] = {
    "Ordered": (hg.progress("ts", ordered=True), 16),
    "Bounded": (hg.progress("ts", within=5), 11),
    "Slack": (hg.progress("ts", slack_rows=2), 13),
    "MoreSlack": (hg.progress("ts", slack_rows=4), 8),
    "Punctuated": (hg.progress("ts", punctuated_by="mark"), 8),
    "Grouped": (hg.progress("ts", ordered=True, by="k"), 14),
    "GroupedBounded": (hg.progress("ts", within=3, by="k"), 11),
}


class TestProgress:
    SQL = "SELECT count(*) AS n, max(k) AS k [RANGE 4, SLIDE 2, WA ts] FROM {}"

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
        """One flow with a stream and a query for each rule."""
        tmp = tmp_path_factory.mktemp("progress")
        arrive(tmp / "in", MARKED_FILES, "json", MARKED)
        flow = hg.Flow(spark, "rules", str(tmp / "checkpoint"))
        for name, (rule, _) in RULES.items():
            flow.stream(name, files(tmp / "in", "json", MARKED), progress=rule)
            flow.query(f"of_{name}", cls.SQL.format(name))
        return flow.run_available()

    @pytest.mark.parametrize("name", RULES)
    def test_closes_what_the_rule_allows(self, spark: SparkSession, run: Run, name: str) -> None:
        progress = RULES[name][1]
        assert run.status()["progress"][name] == progress
        rows = table(spark, [row for file in MARKED_FILES for row in file], MARKED)
        answers = exact(self.SQL.format(name), progress, **{name: rows})
        assert_same(collected(run.results(f"of_{name}")), answers)

    def test_every_batch_has_a_file_of_every_stream(self, run: Run) -> None:
        assert [report.rows for report in run.reports] == [3 * len(RULES), 2 * len(RULES), 3 * len(RULES)]


class TestSinks:
    @pytest.fixture(scope="class")
    @classmethod
    def calls(cls) -> list[tuple[int, list[Row]]]:
        """What the function that is a sink was called with."""
        return []

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("sinks")

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, spark: SparkSession, folder: Path, calls: list[tuple[int, list[Row]]]) -> Iterator[Run]:
        """One flow with a query for each sink."""
        arrive(folder / "in", FILES)
        spark.sql(f"CREATE DATABASE flow_sinks LOCATION '{folder / 'database'}'")
        sinks: dict[str, list[Any]] = {
            "parquet": [hg.sinks.parquet(str(folder / "parquet"))],
            "called": [lambda answers, batch: calls.append((batch, collected(answers)))],
            "json": [hg.sinks.format("json", path=str(folder / "json"))],
            "csv": [hg.sinks.format("csv", path=str(folder / "csv"), header=True)],
            "table": [hg.sinks.table("flow_sinks.answers")],
            "memory": [hg.sinks.memory()],
            "nowhere": [],
            "twice": [hg.sinks.memory(), hg.sinks.parquet(str(folder / "twice"))],
        }
        flow = flow_over(spark, folder, dict.fromkeys(sinks, COUNTS))
        for query, given in sinks.items():
            for sink in given:
                flow.sink(query, sink)
        yield flow.run_available()
        spark.sql("DROP DATABASE flow_sinks CASCADE")

    @pytest.fixture(scope="class")
    @classmethod
    def expected(cls, spark: SparkSession) -> list[Row]:
        return exact(COUNTS, 44, Main=table(spark, ROWS))

    @pytest.mark.parametrize("query", ["parquet", "json", "table", "memory", "nowhere", "twice"])
    def test_results_are_what_was_delivered(self, run: Run, expected: list[Row], query: str) -> None:
        assert_same(collected(run.results(query)), expected)

    def test_anyone_can_read_them(self, spark: SparkSession, run: Run, folder: Path, expected: list[Row]) -> None:
        schema = run.results("memory").schema
        assert_same(collected(spark.read.parquet(str(folder / "parquet"))), expected)
        assert_same(collected(spark.read.schema(schema).json(str(folder / "json"))), expected)
        assert_same(collected(spark.read.schema(schema).csv(str(folder / "csv"), header=True)), expected)
        assert_same(collected(spark.table("flow_sinks.answers")), expected)

    def test_a_function_gets_each_batch_once(
        self, run: Run, calls: list[tuple[int, list[Row]]], expected: list[Row]
    ) -> None:
        batches = [batch for batch, _ in calls]
        assert batches == sorted(set(batches))
        assert len(batches) > 1
        assert_same([row for _, rows in calls for row in rows], expected)
        assert run.status()["answers"]["called"] == len(expected)

    def test_answers_that_only_a_function_got_are_not_to_be_had(self, run: Run) -> None:
        with told(hg.FlowError, "called"):
            run.results("called")

    def test_what_memory_gets_is_kept_beside_another_sink(self, spark: SparkSession, tmp_path: Path) -> None:
        flow = flow_over(spark, tmp_path, {"counts": COUNTS}, table(spark, ROWS))
        flow.sink("counts", lambda _answers, _batch: None)
        flow.sink("counts", hg.sinks.memory())
        run = flow.run_available()
        assert_same(collected(run.results("counts")), exact(COUNTS, Main=table(spark, ROWS)))

    def test_the_console(self, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        flow = flow_over(spark, tmp_path, {"tally": TALLY}, table(spark, [(1, "a", 30), (2, "b", 12)]))
        flow.sink("tally", hg.sinks.console())
        flow.run_available()
        shown = capsys.readouterr().out
        assert "tally, batch 0" in shown
        assert "|2  |42 |0           |5         |1.0          |" in shown

    def test_nothing_is_delivered_while_no_window_closes(self, spark: SparkSession, tmp_path: Path) -> None:
        arrive(tmp_path / "in", [[(3, "a", 1)]])
        flow = flow_over(spark, tmp_path, {"a": TALLY, "b": TALLY, "c": TALLY, "d": TALLY})
        flow.sink("a", hg.sinks.parquet(str(tmp_path / "a")))
        flow.sink("b", hg.sinks.format("json", path=str(tmp_path / "b")))
        flow.sink("c", hg.sinks.table("no_answers_yet"))
        run = flow.run_available()
        for query in "abcd":
            assert run.results(query).columns == ["n", "s", "window_start", "window_end", "sampling_rate"]
            assert run.results(query).count() == 0


class Longest:
    """The longest text, and of several the last in the alphabet."""

    def init(self) -> str:
        return ""

    def incr(self, state: str, value: str) -> str:
        return self.merge(state, value)

    def merge(self, left: str, right: str) -> str:
        return max(left, right, key=lambda text: (len(text), text))

    def final(self, state: str) -> str | None:
        return state or None


class TestQueries:
    def test_without_an_aggregate_tuples_are_passed_on(self, spark: SparkSession, tmp_path: Path) -> None:
        queries = {
            "selected": "SELECT * FROM Main WHERE v > 4",
            "projected": "SELECT ts, upper(k) AS key, v * 2 AS double FROM Main",
            "melded": "SELECT k, v FROM Main UNION Other WHERE k = 'a'",
        }
        arrive(tmp_path / "in", FILES)
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", files(tmp_path / "in"))
        flow.stream("Other", table(spark, FILES[0]))
        for name, sql in queries.items():
            flow.query(name, sql)
        run = flow.run_available()
        streams = {"Main": table(spark, ROWS), "Other": table(spark, FILES[0])}
        assert_same(collected(run.results("selected")), exact(queries["selected"], Main=streams["Main"]))
        assert_same(collected(run.results("projected")), exact(queries["projected"], Main=streams["Main"]))
        assert_same(collected(run.results("melded")), exact(queries["melded"], **streams))

    def test_aggregates_of_users_over_several_batches(self, spark: SparkSession, tmp_path: Path) -> None:
        hg.register_aggregate("longest", Longest(), returns="string")
        words = ["oak", "elm", "hornbeam", "ash", "beech", "rowan", "yew", "poplar", "fir", "lime", "alder", "pine"]
        named = [(ts, word, v) for (ts, _, v), word in zip(ROWS, words, strict=True)]
        queries = {
            "alone": "SELECT longest(k) AS word [RANGE 20, SLIDE 10, WA ts] FROM Main WHERE v > 1",
            "grouped": "SELECT v % 2 AS odd, count(*) AS n, longest(k) AS word, longest(upper(k)) AS loud"
            " [RANGE 10, SLIDE 5, WA ts] FROM Main GROUP BY v % 2",
        }
        arrive(tmp_path / "in", [named[i : i + 3] for i in range(0, len(named), 3)])
        run = flow_over(spark, tmp_path, queries).run_available()
        for name, sql in queries.items():
            assert_same(collected(run.results(name)), exact(sql, 44, Main=table(spark, named)))

    def test_queries_share_their_jobs_and_tables(self, spark: SparkSession, tmp_path: Path) -> None:
        keys = ["", " GROUP BY k", " GROUP BY k, v"]
        calls = ["count(*) AS n", "sum(v) AS s, count(*) AS n", "max(v) AS hi", "avg(v) AS a"]
        windows = ["RANGE 5, SLIDE 5", "RANGE 10, SLIDE 5", "RANGE 20, SLIDE 5", "RANGE 10, SLIDE 10"]
        queries = {
            f"q{i}_{j}": f"SELECT {calls[j]} [{windows[j]}, WA ts] FROM Main{' WHERE v > 2' if j == 2 else ''}{keys[i]}"
            for i in range(3)
            for j in range(4)
        }
        arrive(tmp_path / "in", FILES)

        def jobs_of(name: str, some: dict[str, str]) -> tuple[int, Run]:
            flow = hg.Flow(spark, "test", str(tmp_path / name))
            flow.stream("Main", files(tmp_path / "in"), progress=WITHIN)
            for query, sql in some.items():
                flow.query(query, sql, strategy="paned")
            before = a_job(spark)
            run = flow.run_available()
            return a_job(spark) - before - 1, run

        alone, _ = jobs_of("alone", {"q": COUNTS})
        together, run = jobs_of("together", queries)
        assert together == alone
        for name, sql in queries.items():
            assert_same(collected(run.results(name)), exact(sql, 44, Main=table(spark, ROWS)))
        ((title, of, panes, _),) = tables_of(run)
        assert (of.split(), panes.split()) == (["of", "Main", "by", "k,", "v"], ["panes", "5", "long"])
        assert sorted(title.partition("for ")[2].split(", ")) == sorted(queries)

    def test_a_coarse_query_with_longer_windows_has_a_table_of_its_own(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        windows = {
            "long": ("RANGE 20, SLIDE 5", "k"),
            "often": ("RANGE 10, SLIDE 1", "v"),
            "swapped": ("RANGE 10, SLIDE 5", "v, k"),
            "fine": ("RANGE 10, SLIDE 5", "k, v"),
        }
        queries = {
            name: f"SELECT {keys}, count(*) AS n [{clause}, WA ts] FROM Main GROUP BY {keys}"
            for name, (clause, keys) in windows.items()
        }
        arrive(tmp_path / "in", FILES)
        run = flow_over(spark, tmp_path, queries).run_available()
        tables = [title.rpartition("for ")[2] for title, *_ in tables_of(run)]
        assert tables == ["swapped, fine", "long", "often"]
        for name, sql in queries.items():
            assert_same(collected(run.results(name)), exact(sql, 44, Main=table(spark, ROWS)))


def tables_of(run: Run) -> list[list[str]]:
    """The lines that a run says of each of its tables of partials."""
    return [part.splitlines() for part in run.explain().split("\n\n") if part.startswith("Table ")]


def a_job(spark: SparkSession) -> int:
    """Runs a job and gives its number: Spark counts them up by one."""
    context, group = spark.sparkContext, str(uuid.uuid4())
    context.setJobGroup(group, "a job to count from")
    context.parallelize([0], 1).count()
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    (number,) = context.statusTracker().getJobIdsForGroup(group)
    return int(number)


class TestBadInput:
    """One clear error each, before anything runs."""

    @pytest.fixture
    def flow(self, spark: SparkSession, tmp_path: Path) -> hg.Flow:
        (tmp_path / "in").mkdir()
        return flow_over(spark, tmp_path, {"counts": COUNTS})

    @pytest.mark.parametrize(
        ("sql", "kind", "message"),
        [
            ("SELECT count(*) [RANGE 5, WA ts] FROM Mian", hg.BindError, "unknown stream Mian: did you mean Main?"),
            ("SELECT sum(w) [RANGE 5, WA ts] FROM Main", hg.BindError, "unknown column w"),
            ("SELECT count(*) [RANGE 5, WA v] FROM Main", hg.WindowError, "v does not progress ... window over ts"),
            ("SELECT count(*) [RANGE 5, WA at] FROM Still", hg.WindowError, "at does not progress ... hg.progress("),
            ("SELECT count(*) [RANGE 5] FROM Still", hg.WindowError, "without a progressing attribute"),
            (
                "SELECT Main.v FROM Main [RANGE 5, WA ts], Still [RANGE 5, WA at] WHERE Main.k = Still.k",
                hg.WindowError,
                "Still.at does not progress, so the join would keep its tuples for ever ... hg.progress(",
            ),
            (
                "SELECT count(*) AS n [RANGE 20, SLIDE 20] FROM (SELECT max(k) AS hi [RANGE 5, WA at] FROM Still)",
                hg.WindowError,
                "at does not progress ... hg.progress(",
            ),
            (
                "SELECT count(*) AS n [RANGE 5, RATTR at, SLIDE 1 row, SATTR rank(at)] FROM Still",
                hg.WindowError,
                "at does not progress",
            ),
        ],
    )
    def test_queries(self, flow: hg.Flow, tmp_path: Path, sql: str, kind: type[hg.Error], message: str) -> None:
        flow.stream("Still", files(tmp_path / "in", schema="at INT, k STRING"))
        with told(kind, "query q: ", *message.split(" ... ")):
            flow.query("q", sql)

    def test_names_are_given_once(self, spark: SparkSession, flow: hg.Flow) -> None:
        with told(hg.FlowError, "there is a stream named main already"):
            flow.stream("main", table(spark, ROWS))
        with told(hg.FlowError, "there is a query named counts already"):
            flow.query("counts", TALLY)
        with told(hg.FlowError, "'my query' cannot name a query"):
            flow.query("my query", TALLY)

    def test_streams(self, spark: SparkSession, flow: hg.Flow, tmp_path: Path) -> None:
        rows, missing = table(spark, ROWS), str(tmp_path / "missing")
        with told(hg.BindError, "progress of stream S: there is no column tss; did you mean ts?"):
            flow.stream("S", rows, progress=hg.progress("tss", ordered=True))
        with told(hg.BindError, "progress of stream S: there is no column router; there are ts, k, v"):
            flow.stream("S", rows, progress=hg.progress("ts", ordered=True, by="router"))
        with told(hg.ProgressError, "k is string, and only a time or a number can progress"):
            flow.stream("S", rows, progress=hg.progress("k", ordered=True))
        with told(hg.ProgressError, "within=-5 for progress on ts is negative"):
            flow.stream("S", rows, progress=hg.progress("ts", within=-5))
        with told(hg.FlowError, "stream S: 'data' is neither a DataFrame nor one of hg.sources"):
            flow.stream("S", "data")  # type: ignore[arg-type]
        with told(hg.SourceError, f"{missing}", "does not exist"):
            flow.stream("S", hg.sources.files(missing), progress=WITHIN)
        with told(hg.SourceError, f"{missing}: format='xml': give 'csv', 'json' or 'parquet'"):
            hg.sources.files(missing, format="xml")
        with told(hg.SourceError, "max_files_per_batch=0: give a whole number, one or more"):
            hg.sources.files(missing, max_files_per_batch=0)

    def test_a_path_that_is_not_there_when_the_flow_starts(self, spark: SparkSession, tmp_path: Path) -> None:
        flow = flow_over(spark, tmp_path, {"counts": COUNTS}, files(tmp_path / "missing"))
        with told(hg.SourceError, f"{tmp_path / 'missing'}", "does not exist"):
            flow.run_available()

    def test_sinks(self, flow: hg.Flow) -> None:
        with told(hg.FlowError, "there is no query count in the flow: did you mean counts?"):
            flow.sink("count", hg.sinks.memory())
        with told(hg.FlowError, "'results' is not a sink: give hg.sinks.parquet"):
            flow.sink("counts", "results")
        with told(hg.FlowError, "there is no output early: there are answers, late, shed, bad"):
            flow.sink("counts", hg.sinks.memory(), output="early")

    def test_nothing_to_run(self, spark: SparkSession, tmp_path: Path) -> None:
        flow = hg.Flow(spark, "empty", str(tmp_path))
        with told(hg.FlowError, "flow empty has no streams: add one with flow.stream"):
            flow.run_available()
        flow.stream("Main", table(spark, ROWS))
        with told(hg.FlowError, "flow empty has no queries: add one with flow.query"):
            flow.start()
        with told(hg.Error, "hg.Flow needs a SparkSession"):
            hg.Flow("local", "empty", str(tmp_path))  # type: ignore[arg-type]

    def test_results_of_what_is_not_there(self, flow: hg.Flow) -> None:
        run = flow.run_available()
        with told(hg.FlowError, "there is no query count in the flow: did you mean counts?"):
            run.results("count")
        with told(hg.FlowError, "late tuples of counts are not kept"):
            run.results("counts", output="late")
        with told(hg.FlowError, "there is no output early: there are answers, late, shed, bad"):
            run.results("counts", output="early")

    def test_a_checkpoint_of_other_queries(self, spark: SparkSession, tmp_path: Path) -> None:
        flow_over(spark, tmp_path, {"tally": TALLY}, table(spark, ROWS)).run_available()
        other = flow_over(spark, tmp_path, {"tally": TALLY.replace("count(*)", "max(v)")}, table(spark, ROWS))
        with told(hg.StateError, "has another query of this name (see tally)", "anew=True"):
            other.run_available()
