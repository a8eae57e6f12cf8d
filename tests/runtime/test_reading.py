"""Streams are read as Spark's own file stream reads them, and tuples come in the order in which it takes files."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.runtime.test_flow import told, until

import headgate as hg
from headgate.connect.files.bounded import read_files
from headgate.connect.files.footers import _nanos_elsewhere
from headgate.connect.files.options import FINDING, FOLLOWING, FORMAT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from headgate.api.run import Run

Rows = list[tuple[Any, ...]]
CHUNKS = "SELECT min(v) AS lo, max(v) AS hi, sum(v) AS s, count(*) AS n [RANGE 7 rows, SLIDE 7 rows] FROM Main"
ORDERED = hg.progress("ts", ordered=True)
NANOS, MICROS = pa.timestamp("ns"), pa.timestamp("us")
MODES = (None, "FAILFAST", "DROPMALFORMED", "PERMISSIVE")


def put(path: Path, rows: Rows, columns: str = "ts,v", age: int = 0, header: bool = True) -> None:
    """A file whose format is that of its name; the older it is, the sooner a stream takes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = columns.split(",")
    if ".csv" in path.name:
        lines = [columns] * header + [",".join("" if v is None else str(v) for v in row) for row in rows]
        text = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(text) if path.name.endswith(".gz") else text)
    elif ".json" in path.name:
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        columns_ = zip(*rows, strict=True) if rows else [()] * len(names)
        arrays = [pa.array(c, pa.int32()) if all(type(v) is int for v in c) else pa.array(c) for c in columns_]
        pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), path)
    os.utime(path, (1_700_000_000 - age,) * 2)


def ran(spark: SparkSession, tmp: Path, source: Any, *queries: str, progress: Any = None, **sinks: Any) -> Run:
    """A flow over a stream Main with these queries, q0 and so on, and all that there is."""
    flow = hg.Flow(spark, "test", str(tmp / "checkpoint"))
    flow.stream("Main", source, progress=progress)
    for i, sql in enumerate(queries):
        flow.query(f"q{i}", sql)
    for of, output in sinks.items():
        flow.sink(of, hg.sinks.memory(), output=output)
    return flow.run_available()


def rows_of(run: Run, query: str = "q0") -> Rows:
    return sorted((tuple(row)[:-1] for row in run.results(query).collect()), key=str)


def by_start(run: Run, query: str = "q0") -> Rows:
    """The answers of a query over windows, in their order."""
    return sorted((tuple(row)[:-1] for row in run.results(query).collect()), key=lambda row: row[-2])


def spark_reads(spark: SparkSession, tmp: Path, path: str, format_: str, schema: str, **options: Any) -> Rows:
    """What Spark's own file stream has of a folder."""
    found: Rows = []
    df = spark.readStream.format(format_).schema(schema).options(**options).load(path)
    query = df.writeStream.foreachBatch(lambda rows, _: found.extend(map(tuple, rows.collect())))
    query.option("checkpointLocation", str(tmp / "sparks")).trigger(availableNow=True).start().awaitTermination()
    return sorted(found, key=str)


#: Folders whose files Spark and we have to read alike: their files, the schema, and options.
FOLDERS: dict[str, tuple[str, dict[str, Rows], str, dict[str, Any]]] = {
    "odd names": (
        "parquet",
        {n: [(i, i)] for i, n in enumerate(["a b.parquet", "c#d%20e.parquet", "ü'é.parquet", "=.parquet"])},
        "ts INT, v INT",
        {},
    ),
    "columns": ("parquet", {"a.parquet": [(1, 2)]}, "V INT, more STRING, ts INT", {}),
    "json columns": ("json", {"a.json": [(1, 2)]}, "V INT, more STRING, ts INT", {}),
    "empty": ("json", {"a.json": [], "b.json": [(1, 2)]}, "ts INT, v INT", {}),
    "packed": ("csv", {"a.csv.gz": [(1, 2)], "b.csv": [(3, 4)]}, "ts INT, v INT", {"header": True}),
    "subfolders": ("json", {"a.json": [(1, 2)], "sub/b.json": [(3, 4)]}, "ts INT, v INT", {}),
    "all subfolders": (
        "json",
        {"a.json": [(1, 2)], "sub/b.json": [(3, 4)], "k=1/c.json": [(5, 6)], "_h/d.json": [(7, 8)]},
        "ts INT, v INT",
        {"recursiveFileLookup": True},
    ),
    "some": ("json", {"a.json": [(1, 2)], "b.json": [(3, 4)]}, "ts INT, v INT", {"pathGlobFilter": "b*"}),
    "named by folders": (
        "json",
        {"k=1/w=a%20b/a.json": [(1, 2)], "k=02/w=__HIVE_DEFAULT_PARTITION__/b.json": [(3, 4)]},
        "ts INT, v INT",
        {},
    ),
    "folders below those": ("json", {"k=1/sub/a.json": [(1, 2)], "k=2/b.json": [(3, 4)]}, "ts INT, v INT", {}),
    "types as given": ("json", {"k=1/a.json": [(1, 2)], "k=02/b.json": [(3, 4)]}, "ts INT, v INT, k STRING", {}),
    "letters": ("parquet", {"Kind=x/a.parquet": [(1, 2)]}, "ts INT, v INT, kind STRING", {}),
    "dates": ("csv", {"day=2026-01-02/a.csv": [(1, 2)]}, "ts INT, v INT", {}),
    "in both": ("parquet", {"v=7/a.parquet": [(1, 2)]}, "ts INT, v INT", {}),
    "text in quotes": ("csv", {"a.csv": [(1, '"x\ny"'), (2, "z")]}, "ts INT, v STRING", {"multiLine": True}),
    "other separators": ("csv", {"a.csv": [("1;x",), ("2;-",)]}, "ts INT, v STRING", {"sep": ";", "nullValue": "-"}),
}


class TestAsSparkReads:
    @pytest.mark.parametrize("name", FOLDERS)
    def test_folders(self, spark: SparkSession, tmp_path: Path, name: str) -> None:
        format_, files, schema, options = FOLDERS[name]
        for i, (file, rows) in enumerate(files.items()):
            put(tmp_path / "in" / file, rows, age=i, header="header" in options)
        path = str(tmp_path / "in")
        source = hg.sources.files(path, format_, schema, **options)
        names = [f"`{name}`" for name in source.columns(spark).names]
        run = ran(spark, tmp_path, source, f"SELECT {', '.join(names)} FROM Main")
        assert rows_of(run) == spark_reads(spark, tmp_path, path, format_, schema, **options)

    def test_what_spark_does_not_read_well(self, spark: SparkSession, tmp_path: Path) -> None:
        """Names with brackets, of which it reads some twice; folders that come later, and files beside them."""
        folder = tmp_path / "in [1]"
        names = ["[1]{x}*?.parquet", "1.parquet", "k=1/a.parquet", "k=2/other=3/b.parquet"]
        put(folder / names[0], [(0, 0)])
        schema = "ts INT, v INT, k INT, other INT"
        source = hg.sources.files(str(folder), schema=schema, max_files_per_batch=2)
        sql = "SELECT ts, v, k FROM Main"
        assert rows_of(ran(spark, tmp_path, source, sql)) == [(0, 0, None)]
        for i, name in enumerate(names[1:], start=1):
            put(folder / name, [(i, i)])
        run = ran(spark, tmp_path, source, sql)
        assert rows_of(run) == [(0, 0, None), (1, 1, None), (2, 2, 1), (3, 3, 2)]

    @pytest.mark.parametrize("path", ["in/a [1].json", "in/*.json", "in/{k=1,k=2}"])
    def test_a_file_or_a_pattern(self, spark: SparkSession, tmp_path: Path, path: str) -> None:
        put(tmp_path / "in" / "a [1].json", [(1, 2)])
        put(tmp_path / "in" / "k=1" / "w=5" / "b.json", [(3, 4)])
        source = hg.sources.files(tmp_path / path, "json")
        names = source.columns(spark).names
        expected = [(3, 4, 5)] if "k=1" in path else [(1, 2)]
        assert rows_of(ran(spark, tmp_path, source, f"SELECT {', '.join(sorted(names))} FROM Main")) == expected

    @pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
    @pytest.mark.parametrize("schema", [None, "ts INT, v INT", "region STRING, ts INT, v INT, day STRING"])
    def test_folders_name_columns(self, spark: SparkSession, tmp_path: Path, format_: str, schema: str | None) -> None:
        for i, (region, day) in enumerate([("eu", 1), ("us", 2), ("eu", 3)]):
            put(tmp_path / "in" / f"region={region}" / f"day={day}" / f"{i}.{format_}", [(i, i)])
        options = {"header": True} if format_ == "csv" else {}
        source = hg.sources.files(tmp_path / "in", format_, schema, **options)
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", source, progress=hg.progress("ts", within=5))
        flow.table("Regions", source)
        flow.query("q0", "SELECT ts, region, day FROM Main WHERE region = 'eu'")
        flow.query("q1", "SELECT Main.ts, r.day FROM Main JOIN Regions AS r ON Main.region = r.region AND r.v = 0")
        run = flow.run_available()
        days: list[Any] = ["1", "3"] if schema is not None and "day" in schema else [1, 3]
        assert rows_of(run) == [(0, "eu", days[0]), (2, "eu", days[1])]
        assert rows_of(run, "q1") == [(0, days[0]), (2, days[0])]
        if format_ == "csv" and schema is None:
            assert sorted(read_files(spark, str(tmp_path / "in")).columns) == ["day", "region", "ts", "v"]

    @pytest.mark.parametrize("hidden", [".k=1", "_k", "_k=1"])
    def test_names_that_are_hidden(self, spark: SparkSession, tmp_path: Path, hidden: str) -> None:
        """To Spark, a folder that names a column is not hidden by a line in front."""
        put(tmp_path / "in" / "k=1" / "a.csv", [(1,)], header=False)
        put(tmp_path / "in" / hidden / "a.csv", [(2,)], header=False)
        source = hg.sources.files(tmp_path / "in", "csv", "a INT")
        if hidden == "_k=1":
            with told(hg.SourceError, "in/_k=1 (_k)", "in/k=1 (k)"):
                source.columns(spark)
        else:
            assert rows_of(ran(spark, tmp_path, source, "SELECT a, k FROM Main")) == [(1, 1)]


#: Folders that Spark refuses, as it could not say which columns there are.
DISAGREEING = {
    "names": ("k=1", "j=1"),
    "depth": ("k=1", "k=2/j=3"),
    "order": ("k=1/j=2", "j=3/k=4"),
    "places": ("k=1/j=2", "sub/k=1/j=2"),
}


class TestFoldersThatDisagree:
    """The columns of a schema are filled where folders name them, and NULL elsewhere; no other is left out silently."""

    @pytest.mark.parametrize("name", DISAGREEING)
    @pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
    def test_they_are_refused_unless_the_schema_names_their_columns(
        self, spark: SparkSession, tmp_path: Path, format_: str, name: str
    ) -> None:
        one, other = DISAGREEING[name]
        put(tmp_path / "in" / one / f"1.{format_}", [(7,)], "a", header=False)
        put(tmp_path / "in" / other / f"1.{format_}", [(8,)], "a", header=False)
        for schema in (None, "a INT", "a INT, k INT"):
            with told(hg.SourceError, f"in/{one} (", f"in/{other} (", "j", "in schema=", "recursiveFileLookup=True"):
                hg.sources.files(tmp_path / "in", format_, schema).columns(spark)
        flat = hg.sources.files(tmp_path / "in", format_, "a INT", recursiveFileLookup=True)
        assert rows_of(ran(spark, tmp_path / "flat", flat, "SELECT * FROM Main")) == [(7,), (8,)]

    @pytest.mark.parametrize("header", [True, False])
    @pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
    def test_columns_of_the_schema_are_filled(
        self, spark: SparkSession, tmp_path: Path, format_: str, header: bool
    ) -> None:
        for i, folder in enumerate([".", "k=1", "j=2", "K=3/j=4", "j=5/k=6"]):
            put(tmp_path / "in" / folder / f"1.{format_}", [(i,)], "a", header=header)
        options = {"header": True} if header and format_ == "csv" else {}
        source = hg.sources.files(tmp_path / "in", format_, "j INT, a INT, k STRING", **options)
        run = ran(spark, tmp_path, source, "SELECT a, k, j FROM Main")
        expected = [(0, None, None), (1, "1", None), (2, None, 2), (3, "3", 4), (4, "6", 5)]
        assert (rows_of(run), run.status()["bad"]) == (expected, {"Main": 0})
        if format_ != "csv" or header:
            read = read_files(spark, str(tmp_path / "in"), schema="j INT, a INT, k STRING").select("a", "k", "j")
            assert sorted(map(tuple, read.collect())) == expected

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_nothing_but_columns_of_folders(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        put(tmp_path / "in" / "k=1" / f"1.{format_}", [(7,), (8,)], "a", header=False)
        source = hg.sources.files(tmp_path / "in", format_, "k INT")
        assert rows_of(ran(spark, tmp_path, source, "SELECT k FROM Main")) == [(1,), (1,)]

    @pytest.mark.parametrize("schema", [None, "a INT"])
    def test_one_that_comes_late(self, spark: SparkSession, tmp_path: Path, schema: str | None) -> None:
        """A flow that runs refuses what it would refuse at its start, before it has taken it."""
        put(tmp_path / "in" / "k=1" / "1.json", [(7,)], "a")
        source = hg.sources.files(tmp_path / "in", "json", schema)
        sql = "SELECT a, k FROM Main"
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", source)
        flow.query("q0", sql)
        run = flow.start(trigger="100 milliseconds")
        until(run, lambda: run.status()["rows"] == {"Main": 1})
        put(tmp_path / "in" / "j=5" / "1.json", [(8,)], "a")
        words = (f"{tmp_path}/in", "in/j=5 (j)", "(k)", "name k, j in schema=")
        with told(hg.SourceError, *words):
            run.await_termination(60)
        with told(hg.SourceError, f"{tmp_path}/in", "in/j=5 (j)", "in/k=1 (k)", "name j, k in schema="):
            ran(spark, tmp_path, source, sql)
        named = hg.sources.files(tmp_path / "in", "json", f"{schema or 'a BIGINT'}, k INT, j INT")
        assert rows_of(ran(spark, tmp_path, named, sql)) == [(7, 1), (8, None)]


class TestOrder:
    """Tuples come file by file in the order of age, then of names, and within each from its beginning."""

    @pytest.fixture
    @classmethod
    def splits(cls, spark: SparkSession) -> Iterator[None]:
        """Spark takes large files in parts."""
        spark.conf.set("spark.sql.files.maxPartitionBytes", "2000")
        spark.conf.set("spark.sql.files.openCostInBytes", "100")
        yield
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")

    @pytest.mark.usefixtures("splits")
    @pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
    def test_arrival_numbers(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        random_, rows, came = random.Random(7), 0, []
        for age, name in enumerate(random_.sample([f"a [{i}]'" for i in range(9)] + ["k=1/x", "k=2/x"], 11)):
            count = random_.choice([0, 3, 40, 1500])
            own: Rows = [(i, i) for i in range(rows, rows + count)]
            rows += count
            came += [v for _, v in own]
            if format_ != "parquet":  # Neither has a number.
                own[count // 2 : count // 2] = [("soon", -1), (None, -1)]
            put(tmp_path / "in" / f"{name}.{format_}", own, age=-age)
        for count in (3, 2):
            source = hg.sources.files(
                tmp_path / "in", format_, "ts INT, v INT", count, **({"header": True} if format_ == "csv" else {})
            )
            checkpoint = tmp_path / str(count)
            run = ran(spark, checkpoint, source, CHUNKS, progress=hg.progress("ts", within=10_000))
            chunks = [came[i : i + 7] for i in range(0, len(came) - 6, 7)]
            assert [row[:4] for row in by_start(run)] == [(min(c), max(c), sum(c), 7) for c in chunks]
            assert run.status()["bad"] == {"Main": 0 if format_ == "parquet" else 22}

    def test_files_of_one_time_come_by_their_names(self, spark: SparkSession, tmp_path: Path) -> None:
        for name, first in {"b": 14, "d": 28, "a": 7, "c": 21}.items():
            put(tmp_path / "in" / f"{name}.parquet", [(i, i) for i in range(first, first + 7)])
        put(tmp_path / "in" / "z.parquet", [(i, i) for i in range(7)], age=1)
        run = ran(spark, tmp_path, hg.sources.files(tmp_path / "in"), CHUNKS)
        assert [row[:2] for row in by_start(run)] == [(i, i + 6) for i in range(0, 35, 7)]

    @pytest.mark.usefixtures("splits")
    def test_streaming_and_bounded_dataframes(self, spark: SparkSession, tmp_path: Path) -> None:
        for i, name in enumerate("cab"):
            put(tmp_path / "in" / f"{name}.json", [(j, j) for j in range(i * 700, (i + 1) * 700)], age=-i)
        streaming = spark.readStream.schema("ts INT, v INT").json(str(tmp_path / "in"))
        run = ran(spark, tmp_path, streaming.where("ts >= 0").selectExpr("ts", "v + 0 AS v"), CHUNKS)
        assert [row[:2] for row in by_start(run)] == [(i, i + 6) for i in range(0, 2100, 7)]
        bounded = spark.read.schema("ts INT, v INT").json(str(tmp_path / "in"))
        own = [row.v for row in bounded.collect()]
        bound = ran(spark, tmp_path / "bounded", bounded, CHUNKS, progress=hg.progress("ts", within=3000))
        assert [row[:3] for row in by_start(bound)] == [
            (min(c), max(c), sum(c)) for c in (own[i : i + 7] for i in range(0, 2100, 7))
        ]

    @pytest.mark.usefixtures("splits")
    def test_a_batch_that_is_run_again_has_the_same_numbers(self, spark: SparkSession, tmp_path: Path) -> None:
        for i in range(4):
            put(tmp_path / "in" / f"{9 - i}.json", [(j, j) for j in range(i * 100, i * 100 + 100)], age=-i)

        def flow(deliver: Any) -> hg.Flow:
            made = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
            made.stream("Main", hg.sources.files(tmp_path / "in", "json", "ts INT, v INT"))
            made.query("q0", CHUNKS)
            made.sink("q0", deliver)
            return made

        delivered: list[Rows] = []

        def fail(answers: Any, _: int) -> None:
            delivered.append(sorted(map(tuple, answers.collect())))
            raise ValueError("no")

        with pytest.raises(hg.FlowError):
            flow(fail).run_available()
        spark.conf.set("spark.sql.files.maxPartitionBytes", "100000000")
        flow(lambda answers, _: delivered.append(sorted(map(tuple, answers.collect())))).run_available()
        assert delivered[0] == delivered[1]
        assert [row[:2] for row in delivered[0]] == [(i, i + 6) for i in range(0, 393, 7)]

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_windows_over_rows_among_malformed_records(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        own: Rows = [(i, i % 3) for i in range(20)]
        own.insert(5, ("soon", 1))
        own.insert(11, (9, "many"))
        put(tmp_path / "in" / f"a.{format_}", own)
        source = hg.sources.files(
            tmp_path / "in", format_, "ts INT, v INT", **({"header": True} if format_ == "csv" else {})
        )
        queries = {
            "SELECT count(*) AS n [RANGE 4 rows, SLIDE 4 rows] FROM Main": None,
            "SELECT v, max(ts) AS hi, count(*) AS n [RANGE 2 rows, SLIDE 2 rows, PA v] FROM Main GROUP BY v": None,
            "SELECT sum(ts) AS s [RANGE 6, RATTR ts, SLIDE 3 rows, SATTR row_num] FROM Main": None,
        }
        run = ran(spark, tmp_path, source, *queries, progress=hg.progress("ts", ordered=True))
        good = spark.createDataFrame([(i, i % 3) for i in range(20)], "ts INT, v INT").coalesce(1)
        for i, sql in enumerate(queries):
            exact = {tuple(row)[:-1] for row in hg.evaluate(sql, Main=good).collect()}
            found = set(rows_of(run, f"q{i}"))
            assert found <= exact
            assert len(found) >= len(exact) - 3  # The last windows are open.
        assert run.status()["bad"] == {"Main": 2}


class TestHeaders:
    """The columns of CSV files with a header go by their names."""

    def test_columns_in_another_order(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.csv", [(1, 2, 3)], "ts,v,w")
        put(tmp_path / "in" / "b.csv", [(9, 8, 7, 6)], "other, W ,V,TS")
        put(tmp_path / "in" / "k=1" / "c.csv", [(5, 4, 3, 0)], "w,ts,v,k")
        source = hg.sources.files(tmp_path / "in", "csv", "ts INT, v INT, w INT", header=True)
        expected = [(1, 2, 3, None), (4, 3, 5, 1), (6, 7, 8, None)]
        assert rows_of(ran(spark, tmp_path, source, "SELECT ts, v, w, k FROM Main")) == expected
        read = read_files(spark, str(tmp_path / "in")).select("ts", "v", "w", "k")
        assert sorted(map(tuple, read.collect())) == expected
        by_place = hg.sources.files(tmp_path / "in", "csv", "ts INT, v INT, w INT", header=True, enforceSchema=True)
        run = ran(spark, tmp_path / "by_place", by_place, "SELECT ts, v, w FROM Main")
        assert rows_of(run) == [(1, 2, 3)]
        assert run.status()["bad"] == {"Main": 2}

    def test_the_first_line_is_a_record_unless_it_is_said_to_be_a_header(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        put(tmp_path / "in" / "a.csv", [(1, 2), (3, 4)], header=False)
        source = hg.sources.files(tmp_path / "in", "csv", "ts INT, v INT")
        assert rows_of(ran(spark, tmp_path, source, "SELECT ts, v FROM Main")) == [(1, 2), (3, 4)]
        flow = hg.Flow(spark, "test", str(tmp_path / "table"))
        flow.stream("Main", source)
        flow.table("t", source)
        flow.query("q0", "SELECT t.v FROM Main JOIN t ON Main.v = t.v")
        assert rows_of(flow.run_available()) == [(2,), (4,)]
        assert hg.sources.files(tmp_path / "in", "csv").columns(spark).names == ["_c0", "_c1"]

    def test_a_column_that_a_file_has_not(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.csv", [(1, 2)])
        put(tmp_path / "in" / "b.csv", [(3, 4, 5), (6, 7, 8)], "ts,w,V1")
        put(tmp_path / "in" / "c.csv", [(3, 4, 5)], "ts,v,v")
        (tmp_path / "in" / "empty.csv").touch()
        schema, sql = "ts INT, v INT", "SELECT count(*) AS n [RANGE ALL, SLIDE 1] FROM Main"
        files = {mode: hg.sources.files(tmp_path / "in", "csv", schema, header=True, mode=mode) for mode in MODES}
        run = ran(spark, tmp_path, files[None], sql, "SELECT ts FROM Main", progress=ORDERED, Main="bad")
        assert rows_of(run, "q1") == [(1,)]
        assert run.status()["bad"] == {"Main": 3}
        delivered = run.results("Main", output="bad").collect()
        assert {row["record"] for row in delivered} == {"3,4,5", "6,7,8"}
        with told(hg.SourceError, "b.csv has no column v: its header is ts, w, V1"):
            ran(spark, tmp_path / "fail", files["FAILFAST"], sql, progress=ORDERED)
        assert rows_of(ran(spark, tmp_path / "drop", files["DROPMALFORMED"], "SELECT ts FROM Main")) == [(1,)]
        lenient = ran(spark, tmp_path / "lenient", files["PERMISSIVE"], "SELECT ts, v FROM Main")
        assert rows_of(lenient) == [(1, 2), (3, None), (3, None), (6, None)]

    @pytest.mark.parametrize(
        ("text", "options"),
        [
            ("  \nb,a\nx,1\n", {}),
            ("\n \n\n b , a \nx,1\n", {}),
            ("# c\n  \n#,d\nb,a\nx,1\n", {"comment": "#"}),
            ("\ufeff  \r\nb,a\r\nx,1\r\n", {}),
            ("  ;b,a;x,1;", {"lineSep": ";"}),
            ("\n\nb,a\nx,1\n", {"multiLine": True}),
        ],
    )
    @pytest.mark.parametrize("schema", [None, "a INT, b STRING"])
    def test_lines_that_are_passed_over(
        self, spark: SparkSession, tmp_path: Path, text: str, options: dict[str, Any], schema: str | None
    ) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.csv").write_bytes(text.encode())
        source = hg.sources.files(tmp_path / "in", "csv", schema, header=True, **options)
        names = {name.strip(): f"`{name}`" for name in source.columns(spark).names}
        run = ran(spark, tmp_path, source, f"SELECT {names['a']}, {names['b']} FROM Main")
        assert (rows_of(run), run.status()["bad"]) == ([(1, "x")], {"Main": 0})

    def test_lines_of_tabs(self, spark: SparkSession, tmp_path: Path) -> None:
        """Spark passes over them as it reads, but not as it looks for columns."""
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.csv").write_text("\t\nb,a\nx,1\n")
        with told(hg.SourceError, f"{tmp_path}/in", "header b, a", "schema="):
            hg.sources.files(tmp_path / "in", "csv", header=True).columns(spark)
        source = hg.sources.files(tmp_path / "in", "csv", "a INT, b STRING", header=True)
        assert rows_of(ran(spark, tmp_path, source, "SELECT a, b FROM Main")) == [(1, "x")]

    def test_a_file_that_comes_late_and_has_no_column_of_the_others(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.csv", [(1,)], "ts")
        put(tmp_path / "in" / "b.csv", [(2,)], "v")
        source = hg.sources.files(tmp_path / "in", "csv", header=True)
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", source)
        flow.query("q0", "SELECT ts, v FROM Main")
        run = flow.start(trigger="100 milliseconds")
        until(run, lambda: run.status()["rows"] == {"Main": 2})
        put(tmp_path / "in" / "c.csv", [(3,)], "other")
        until(run, lambda: run.status()["rows"] == {"Main": 3})
        run.stop()
        assert rows_of(run) == [(1, None), (None, 2), (None, None)]


class TestBad:
    """Whether a record is bad is up to the schema of its stream, whoever asks."""

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_its_neighbours_decide_nothing(self, spark: SparkSession, tmp_path: Path, format_: str) -> None:
        rows: Rows = [(1, 2, "a"), (2, "oops", "b"), (3, 4, "c"), ("soon", 5, "d"), (None, 6, "e"), (7, 8, "f")]
        put(tmp_path / "in" / f"a.{format_}", rows, "ts,v,s")
        options = {"header": True} if format_ == "csv" else {}
        source = hg.sources.files(tmp_path / "in", format_, "ts INT, v INT, s STRING", **options)
        count, chunks = "SELECT count(*) AS n [RANGE 1, SLIDE 1, WA ts] FROM Main", CHUNKS.replace("7", "1")
        alone = ran(spark, tmp_path / "alone", source, count, progress=ORDERED)
        beside = ran(spark, tmp_path / "beside", source, count, count.replace("*", "v"), progress=ORDERED)
        numbered = ran(spark, tmp_path / "numbered", source, count, chunks, "SELECT s FROM Main", progress=ORDERED)
        sunk = ran(spark, tmp_path / "sunk", source, count, progress=ORDERED, Main="bad")
        for run in (alone, beside, numbered, sunk):
            assert rows_of(run) == [(1, 1, 2), (1, 3, 4)]
            assert (run.status()["rows"], run.status()["bad"]) == ({"Main": 6}, {"Main": 3})
        assert rows_of(numbered, "q2") == [("a",), ("c",), ("f",)]
        assert sorted(row[0] for row in rows_of(numbered, "q1")) == [2, 4, 8]
        bad = {row["record"] or row["s"] for row in sunk.results("Main", output="bad").collect()}
        assert [sum(word in text for text in bad) for word in ("oops", "soon", "e")] == [1, 1, 1]
        assert len(bad) == 3

    @pytest.mark.parametrize("format_", ["csv", "json"])
    def test_a_column_for_records_in_modes_that_have_none(
        self, spark: SparkSession, tmp_path: Path, format_: str
    ) -> None:
        put(tmp_path / "in" / f"a.{format_}", [(1, 2), (2, "oops"), (3, 4)], header=False)
        path, schema = str(tmp_path / "in"), "raw STRING, ts INT, v INT"
        options: dict[str, Any] = {"columnNameOfCorruptRecord": "raw", "mode": "DROPMALFORMED"}
        run = ran(spark, tmp_path, hg.sources.files(path, format_, schema, **options), "SELECT raw, ts, v FROM Main")
        assert rows_of(run) == spark_reads(spark, tmp_path, path, format_, schema, **options)
        assert rows_of(run) == [(None, 1, 2), (None, 3, 4)]

    def test_records_that_do_not_fit_are_no_column(self, spark: SparkSession, tmp_path: Path) -> None:
        """Which columns the files tell does not depend on whether there is such a record among them."""
        put(tmp_path / "in" / "a.json", [(1, 2)])
        (tmp_path / "in" / "b.json").write_text("oops\n")
        source = hg.sources.files(tmp_path / "in", "json")
        assert source.columns(spark).names == ["ts", "v"]
        run = ran(spark, tmp_path, source, "SELECT ts, v FROM Main")
        assert (rows_of(run), run.status()["bad"]) == ([(1, 2)], {"Main": 1})
        asked = hg.sources.files(tmp_path / "in", "json", columnNameOfCorruptRecord="raw")
        assert asked.columns(spark).names == ["raw", "ts", "v"]
        (tmp_path / "in" / "a.json").unlink()
        with told(hg.SourceError, f"{tmp_path}/in", "no line of it is a JSON object"):
            source.columns(spark)

    @pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE", "own"])
    def test_modes_of_spark(self, spark: SparkSession, tmp_path: Path, mode: str) -> None:
        put(tmp_path / "in" / "a.csv", [(1, 2), (2, "oops")], header=False)
        schema = "ts INT, v INT" + ", _corrupt_record STRING" * (mode == "own")
        source = hg.sources.files(tmp_path / "in", "csv", schema, mode=None if mode == "own" else mode)
        sql = "SELECT ts FROM Main" + " WHERE _corrupt_record IS NULL" * (mode == "own")
        if mode == "FAILFAST":
            with told(hg.SourceError, "a.csv", "oops"):
                ran(spark, tmp_path, source, sql)
        else:
            assert rows_of(ran(spark, tmp_path, source, sql)) == ([(1,), (2,)] if mode == "PERMISSIVE" else [(1,)])


class TestTimes:
    @pytest.mark.parametrize("schema", [None, "ts TIMESTAMP, v INT"])
    def test_nanoseconds(self, spark: SparkSession, tmp_path: Path, schema: str | None) -> None:
        folder = tmp_path / "in"
        folder.mkdir()
        kinds = {"ns": ("ns", None), "zoned": ("ns", "UTC"), "us": ("us", "UTC"), "ms": ("ms", None)}
        for i, (name, (unit, zone)) in enumerate(kinds.items()):
            a_second = {"ns": 10**9, "us": 10**6, "ms": 1000}[unit]
            places = [(1_700_000_000 + i) * a_second + 1, -1]
            table = pa.table({"ts": pa.array(places, pa.timestamp(unit, zone)), "v": pa.array([i, i], pa.int32())})
            pq.write_table(table, folder / f"{name}.parquet")
        source = hg.sources.files(folder, schema=schema)
        run = ran(spark, tmp_path, source, "SELECT v, unix_micros(ts) AS at FROM Main", progress=ORDERED)
        start = 1_700_000_000_000_000
        expected = [(0, -1), (0, start), (1, -1), (1, start + 1_000_000), (2, -1), (2, start + 2_000_001)]
        expected += [(3, -1000), (3, start + 3_001_000)]
        assert sorted(rows_of(run)) == sorted(expected)
        read = read_files(spark, str(folder)).selectExpr("v", "unix_micros(ts)")
        assert sorted(map(tuple, read.collect())) == sorted(expected)
        for name, (unit, zone) in kinds.items():
            file, is_point = f"{folder}/{name}.parquet", zone is not None
            assert _nanos_elsewhere(spark, f"file:{file}") == ({"ts": is_point} if unit == "ns" else {})
            assert read_files(spark, file).dtypes[0][1] == ("timestamp" if is_point else "timestamp_ntz")

    @pytest.mark.parametrize(
        ("kind", "value", "path", "sql"),
        [
            (pa.struct([("t", NANOS), ("u", MICROS)]), {"t": 1, "u": 2}, "e.t", "STRUCT<T: {}, u: TIMESTAMP>"),
            (pa.list_(NANOS), [1], "e.list.element", "ARRAY<{}>"),
            (pa.map_(pa.string(), NANOS), [("x", 1)], "e.key_value.value", "MAP<STRING, {}>"),
            (pa.list_(pa.struct([("t", NANOS)])), [{"t": 1}], "e.list.element.t", "ARRAY<STRUCT<t: {}>>"),
        ],
    )
    def test_nanoseconds_inside_of_columns(
        self, spark: SparkSession, tmp_path: Path, kind: pa.DataType, value: Any, path: str, sql: str
    ) -> None:
        (tmp_path / "in").mkdir()
        file = tmp_path / "in" / "a.parquet"
        pq.write_table(pa.table({"v": pa.array([5]), "E": pa.array([value], kind)}), file)
        for schema in (None, f"v BIGINT, e {sql.format('TIMESTAMP')}", f"v BIGINT, e {sql.format('TIMESTAMP_NTZ')}"):
            source = hg.sources.files(tmp_path / "in", schema=schema)
            with told(hg.SourceError, "a.parquet has times in nanoseconds", path, "microseconds", "BIGINT"):
                ran(spark, tmp_path, source, "SELECT v FROM Main")
        assert _nanos_elsewhere(spark, f"file:{file}").keys() == {path}
        numbers = hg.sources.files(tmp_path / "in", schema=f"v BIGINT, e {sql.format('BIGINT')}")
        read = rows_of(ran(spark, tmp_path / "numbers", numbers, "SELECT v, to_json(e) AS e FROM Main"))
        assert "1" in read[0][1]
        without = hg.sources.files(tmp_path / "in", schema="v BIGINT")
        assert rows_of(ran(spark, tmp_path / "without", without, "SELECT v FROM Main")) == [(5,)]


class TestErrors:
    def test_what_cannot_be_read_is_told_in_a_line(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.parquet", [(1, 2)])
        whole = (tmp_path / "in" / "a.parquet").read_bytes()
        source = hg.sources.files(tmp_path / "in", schema="ts INT, v INT")
        (tmp_path / "in" / "a.parquet").write_bytes(whole[:-9])
        with told(hg.SourceError, "a.parquet", "not a Parquet file"):
            ran(spark, tmp_path, source, CHUNKS)
        (tmp_path / "in" / "a.parquet").unlink()
        put(tmp_path / "in" / "b.parquet", [(3, 4)], age=-4 * 10**8)
        with told(hg.SourceError, "a.parquet is gone", "ignoreMissingFiles=True"):
            ran(spark, tmp_path, source, CHUNKS)
        forgiving = hg.sources.files(tmp_path / "in", schema="ts INT, v INT", ignoreMissingFiles=True)
        assert ran(spark, tmp_path, forgiving, CHUNKS).status()["rows"] == {"Main": 1}
        (tmp_path / "in").rename(tmp_path / "away")
        with told(hg.SourceError, f"{tmp_path}/in", "does not exist"):
            ran(spark, tmp_path, source, CHUNKS)

    def test_types_that_spark_cannot_read(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        pq.write_table(pa.table({"ts": pa.array([1, 2], pa.float16())}), tmp_path / "in" / "a.parquet")
        with told(hg.SourceError, f"{tmp_path}/in", "FLOAT16"):
            hg.sources.files(tmp_path / "in").columns(spark)
        with told(hg.SourceError, "a.parquet", "[ts]"):
            ran(spark, tmp_path, hg.sources.files(tmp_path / "in", schema="ts TIMESTAMP"), "SELECT ts FROM Main")

    def test_a_folder_name_that_is_no_value(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "k=x" / "a.json", [(1, 2)])
        source = hg.sources.files(tmp_path / "in", "json", "ts INT, k INT")
        with told(hg.SourceError, f"{tmp_path}/in", "'x'", "`k`"):
            ran(spark, tmp_path, source, "SELECT ts FROM Main")

    def test_a_folder_that_goes_while_the_flow_runs(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.parquet", [(1, 2)])
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", hg.sources.files(tmp_path / "in"))
        flow.query("q0", CHUNKS)
        run = flow.start(trigger="100 milliseconds")
        (tmp_path / "in").rename(tmp_path / "away")
        with told(hg.SourceError, f"stream Main: {tmp_path}/in is gone", "the flow stops"):
            run.await_termination()


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"path": 5}, "hg.sources.files: path=5: give the path of a folder"),
            ({"path": ""}, "path='': give the path of a folder"),
            ({"path": " "}, "path=' ': give the path of a folder"),
            ({"format": "CSV"}, "in: format='CSV': did you mean 'csv'?"),
            ({"format": None}, "in: format=None: give 'csv', 'json' or 'parquet'"),
            ({"fromat": "csv"}, "in: unknown option fromat: did you mean format?"),
            ({"recursiveFileLookup": "yes"}, "recursiveFileLookup='yes': give True or False"),
            ({"latestFirst": 1}, "latestFirst=1: give True or False"),
            ({"maxFilesPerTrigger": 0}, "maxFilesPerTrigger=0: give a whole number, one or more"),
            ({"maxFilesPerTrigger": "some"}, "maxFilesPerTrigger='some': give a whole number"),
            ({"format": "csv", "seperator": ";"}, "in: unknown option seperator: did you mean sep?"),
            ({"format": "csv", "headers": True}, "unknown option headers: did you mean header?"),
            ({"max_file_per_batch": 1}, "unknown option max_file_per_batch: did you mean max_files_per_batch?"),
            ({"header": True}, "unknown option header: there are archivePathFilter, basePath, cleanSource"),
            ({"format": "json", "mode": "lenient"}, "mode='lenient': give PERMISSIVE, DROPMALFORMED or FAILFAST"),
            ({"schema": ["ts"]}, "in: schema=['ts']: give a text"),
            ({"max_files_per_batch": "1"}, "max_files_per_batch='1': give a whole number, one or more"),
            ({"max_files_per_batch": True}, "max_files_per_batch=True: give a whole number"),
            ({"max_files_per_batch": 1, "maxFilesPerTrigger": 1}, "are the same: leave one out"),
        ],
    )
    def test_of_sources(self, given: dict[str, Any], words: str) -> None:
        with told(hg.SourceError, words):
            hg.sources.files(**{"path": "in", **given})

    @pytest.mark.parametrize(
        ("format_", "options", "words"),
        [
            ("csv", {"header": "yes"}, "header flag can be true or false"),
            ("csv", {"encoding": "utf8mb4"}, "`charset`"),
            ("csv", {"quote": "''"}, "The value of quote cannot be more than one character"),
            ("json", {"allowComments": "x"}, 'For input string: "x"'),
            ("csv", {"basePath": "/elsewhere"}, "basePath='/elsewhere': give a folder that"),
        ],
    )
    def test_of_sources_with_values_that_spark_knows_to_be_wrong(
        self, spark: SparkSession, tmp_path: Path, format_: str, options: dict[str, Any], words: str
    ) -> None:
        """They are told with the stream: in the first batch they would seem to be the fault of a query."""
        (tmp_path / "in").mkdir()
        flow = hg.Flow(spark, "test", tmp_path / "checkpoint")
        with told(hg.SourceError, f"{tmp_path}/in", words):
            flow.stream("Main", hg.sources.files(tmp_path / "in", format_, "ts INT, v INT", **options))

    def test_that_are_right(self) -> None:
        assert hg.sources.files(Path("in"), max_files_per_batch=np.int64(2)).max_files_per_batch == 2  # type: ignore[arg-type]
        assert hg.sinks.format("csv", Path=Path("out")).options == {"Path": "out"}
        files = hg.sources.files("in", "csv", SEP=";", maxBytesPerTrigger="1g", lineSep=None)
        assert files.options == {"SEP": ";", "maxBytesPerTrigger": "1g"}
        hadoop: dict[str, Any] = {"parquet.read.filter": "x"}
        assert hg.sources.files("in", **hadoop).options == {"parquet.read.filter": "x"}
        assert hg.sinks.format("some.vendor", name="x", anything=1).options == {"name": "x", "anything": 1}

    @pytest.mark.parametrize(
        ("name", "options", "words"),
        [
            (
                "csv",
                {"path": "out", "seperator": ";"},
                "hg.sinks.format('csv'): unknown option seperator: did",
            ),
            ("parquet", {"path": "out", "partition_by": "k"}, "did you mean partitionBy?"),
            ("json", {"path": "out", "mode": "overwrite"}, "mode: answers are appended"),
            ("json", {}, "path is missing"),
            ("json", {"path": "out", "partitionBy": 3}, "partitionBy=3: give the name of a column"),
            ("json", {"path": "out", "partitionBy": ""}, "partitionBy='': give the name of a column"),
            ("json", {"path": "out", "partitionBy": ["k", ""]}, "partitionBy=['k', '']: give the name of a column"),
            ("json", {"path": 5}, "hg.sinks.format('json'): path=5: give the path of a folder"),
        ],
    )
    def test_of_sinks(self, name: str, options: dict[str, Any], words: str) -> None:
        with told(hg.FlowError, words):
            hg.sinks.format(name, **options)

    def test_answers_in_folders(self, spark: SparkSession, tmp_path: Path) -> None:
        put(tmp_path / "in" / "a.json", [(1, 2), (2, 3)])
        flow = hg.Flow(spark, "test", str(tmp_path / "checkpoint"))
        flow.stream("Main", hg.sources.files(tmp_path / "in", "json"))
        flow.query("q0", "SELECT ts, v FROM Main")
        flow.query("q1", "SELECT ts, v FROM Main")
        flow.sink("q0", hg.sinks.format("parquet", path=str(tmp_path / "out"), partitionBy="v"))
        run = flow.run_available()
        assert {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()} == {"v=2", "v=3"}
        assert sorted(run.results("q0").select("ts", "v").collect()) == [(1, 2), (2, 3)]
        flow.sink("q1", hg.sinks.format("json", path=str(tmp_path / "out"), partitionBy=["tts"]))
        put(tmp_path / "in" / "b.json", [(1, 2)])
        with told(hg.FlowError, "partitionBy has no column tts: did you mean ts?"):
            flow.run_available()

    def test_are_those_of_spark(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        sql = jvm.org.apache.spark.sql
        sources = sql.execution.datasources
        known = {
            "csv": sql.catalyst.csv.CSVOptions,
            "json": sql.catalyst.json.JSONOptions,
            "parquet": sources.parquet.ParquetOptions,
            "orc": sources.orc.OrcOptions,
            "text": sources.text.TextOptions,
        }
        for format_, options in known.items():
            names = options.getAllOptions().toList()
            assert {names.apply(i) for i in range(names.size())} == FORMAT_OPTIONS[format_]
        streaming = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.runtime.FileStreamOptions")
        methods = {method.getName().removesuffix("Ms") for method in streaming.getMethods()}
        assert methods >= FOLLOWING
        assert {"pathGlobFilter", "recursiveFileLookup"} <= FINDING
