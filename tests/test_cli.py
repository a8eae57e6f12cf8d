"""The command line: answers in each format, plans, the demonstration, and errors of one line."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support import assert_same, collected

import headgate as hg
from headgate.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


CSV = "ts,k,v\n2026-01-01 00:00:01,a,1\n2026-01-01 00:00:02,b,2\n2026-01-01 00:00:03,a,\n"
SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 2 seconds, SLIDE 1 second, WA ts] FROM M GROUP BY k"
ANSWER = [
    ("a", 1, 1, 0, 2),
    ("a", 1, 1, 1, 3),
    ("b", 1, 2, 1, 3),
    ("a", 1, None, 2, 4),
    ("b", 1, 2, 2, 4),
    ("a", 1, None, 3, 5),
]
SCRIPT = """
-- the busiest
CREATE STREAM M FROM kafka OPTIONS (secret = 'hush') SCHEMA (ts TIMESTAMP, k STRING, v INT)
    PROGRESS ON ts WITHIN 10 seconds;
CREATE QUERY busy WITH (shed = 'subset', gap = 10) AS SELECT count(*) AS n [RANGE 1 minute] FROM M;
CREATE QUERY top AS SELECT max(v) AS top [RANGE 1 hour, SLIDE 1 minute] FROM M;
CREATE SINK FOR busy INTO parquet 'results/busy';
"""


@dataclass
class Ended:
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


Run: TypeAlias = "Callable[..., Ended]"


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: str) -> Ended:
        capfd.readouterr()
        code = main(arguments)
        return Ended(code, *capfd.readouterr())

    return command


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "m.csv").write_text(CSV)
    return f"M={tmp_path / 'm.csv'}"


def failed(ended: Ended) -> str:
    """The message of a command that failed as it should: one line on stderr, nothing on stdout."""
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("error: ")
    return ended.err.removeprefix("error: ").rstrip("\n")


@pytest.mark.usefixtures("spark")
class TestQuery:
    def test_csv_is_all_that_is_printed(self, run: Run, data: str) -> None:
        ended = run("query", SQL, "--stream", data, "--format", "csv")
        assert (ended.code, ended.err) == (0, "")
        header, *rows = csv.reader(io.StringIO(ended.out))
        assert header == ["k", "n", "s", "window_start", "window_end", "sampling_rate"]
        time = "2026-01-01 00:00:0{}"
        assert rows == [
            [k, str(n), "" if s is None else str(s), time.format(start), time.format(end), "1.0"]
            for k, n, s, start, end in ANSWER
        ]

    @pytest.mark.parametrize("strategy", ["eager", "paned"])
    def test_json_is_all_that_is_printed(self, run: Run, data: str, strategy: str) -> None:
        ended = run("query", SQL, "--stream", data, "--format", "json", "--strategy", strategy)
        assert (ended.code, ended.err) == (0, "")
        time = "2026-01-01T00:00:0{}.000000Z"
        assert [json.loads(line) for line in ended.out.splitlines()] == [
            {
                "k": k,
                "n": n,
                "s": s,
                "window_start": time.format(start),
                "window_end": time.format(end),
                "sampling_rate": 1.0,
            }
            for k, n, s, start, end in ANSWER
        ]

    def test_table(self, run: Run, data: str) -> None:
        lines = run("query", SQL, "--stream", data).out.splitlines()
        assert lines[0].split() == ["k", "n", "s", "window_start", "window_end", "sampling_rate"]
        assert lines[5].split() == ["a", "1", "NULL", "2026-01-01", "00:00:02", "2026-01-01", "00:00:04", "1.0"]
        assert lines[-1] == "6 rows"

    def test_a_table_that_is_cut_says_so(self, run: Run, data: str) -> None:
        lines = run("query", SQL, "--stream", data, "--limit", "2").out.splitlines()
        assert (len(lines), lines[-1]) == (6, "6 rows, the first 2 shown")

    def test_text_in_a_table_is_not_markup(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("k\n[red]x[/red]\n" + "y" * 300 + "\n")
        ended = run("query", "SELECT k FROM M", "--stream", f"M={tmp_path}/m.csv")
        assert "[red]x[/red]" in ended.out
        assert "y" * 300 in ended.out

    def test_no_rows(self, run: Run, data: str) -> None:
        assert run("query", "SELECT k FROM M WHERE k = 'z'", "--stream", data).out.endswith("0 rows\n")

    @pytest.mark.parametrize("suffix", ["parquet", "csv", "json"])
    def test_what_is_written_can_be_queried(self, run: Run, data: str, tmp_path: Path, suffix: str) -> None:
        path = str(tmp_path / f"out.{suffix}")
        ended = run("query", SQL, "--stream", data, "--output", path)
        assert (ended.code, ended.out, ended.err) == (0, "", f"wrote {path}\n")
        columns = "k, n, s, window_start, window_end, sampling_rate"
        again = run("query", f"SELECT {columns} FROM R", "--stream", f"R={path}", "--format", "csv")
        assert again.out == run("query", SQL, "--stream", data, "--format", "csv").out
        assert "exists already" in failed(run("query", SQL, "--stream", data, "--output", path))

    def test_the_query_may_be_in_a_file_or_on_stdin(
        self, run: Run, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "q.sql").write_text("SELECT k FROM M WHERE v = 2;")
        monkeypatch.setattr("sys.stdin", io.StringIO("SELECT k FROM M WHERE v = 2"))
        outputs = {run("query", q, "--stream", data, "--format", "csv").out for q in (f"@{tmp_path}/q.sql", "-")}
        assert outputs == {"k,sampling_rate\nb,1.0\n"}

    def test_streams_may_have_any_name(self, run: Run, data: str) -> None:
        stream = data.replace("M=", "strategy=")
        assert run("query", "SELECT k FROM strategy", "--stream", stream).code == 0

    @pytest.mark.parametrize(
        ("sql", "options", "message"),
        [
            ("SELECT zz FROM M", [], "unknown column zz: there are ts, k, v"),
            ("SELECT k FROM N", [], "unknown stream N: there are M"),
            ("SELECT k\nFROM", [], "line 2, column 5: expected a stream, found the end of the text"),
            ("SELECT k FROM M", ["--stream", "N=nowhere.csv"], "nowhere.csv does not exist"),
            ("SELECT k FROM M", ["--stream", "nowhere.csv"], "--stream nowhere.csv: write it as NAME=PATH"),
            ("SELECT k FROM M", ["--stream", "m=x.csv"], "--stream m=x.csv: there is a stream m already"),
            ("SELECT k FROM M", ["--strategy", "lazy"], "'lazy' is not one of 'eager', 'paned'"),
            ("SELECT k FROM M", ["--output", "out.xls"], "--output out.xls: end the name with .parquet, .csv"),
            ("@nowhere.sql", [], "cannot read nowhere.sql: No such file"),
            ("SELECT 1 / (v - 1) AS x FROM M", ["--format", "csv"], "Division by zero"),
        ],
    )
    def test_errors_are_one_line(self, run: Run, data: str, sql: str, options: list[str], message: str) -> None:
        assert message in failed(run("query", sql, "--stream", data, *options))


class TestExplain:
    def test_a_script(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "flow.sql").write_text(SCRIPT)
        ended = run("explain", str(tmp_path / "flow.sql"))
        assert (ended.code, ended.err) == (0, "")
        assert "hush" not in ended.out
        streams, busy, top = ended.out.split("\n\n")
        assert streams == "Stream M from kafka, PROGRESS ON ts WITHIN 10 seconds"
        assert busy.startswith(
            "Query busy with shed = 'subset', gap = 10\n  into parquet 'results/busy'\nProject count(*) AS n"
        )
        assert top.startswith("Query top\nProject max(v) AS top")
        assert "prefix and suffix blocks" in top

    def test_a_strategy_may_be_forced(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "flow.sql").write_text(SCRIPT)
        assert "eager: asked for" in run("explain", str(tmp_path / "flow.sql"), "--strategy", "eager").out

    def test_a_script_needs_no_spark(self, tmp_path: Path) -> None:
        (tmp_path / "flow.sql").write_text(SCRIPT)
        program = (
            "import sys; from headgate.cli import main; code = main(sys.argv[1:]);"
            " assert 'pyspark' not in sys.modules; sys.exit(code)"
        )
        command = [sys.executable, "-c", program, "explain", str(tmp_path / "flow.sql")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert "Query busy" in ended.stdout

    @pytest.mark.usefixtures("spark")
    def test_a_query_over_files(self, run: Run, data: str, tmp_path: Path) -> None:
        (tmp_path / "q.sql").write_text(SQL)
        ended = run("explain", str(tmp_path / "q.sql"), "--stream", data)
        assert ended.out.startswith("Project k, count(*) AS n, sum(v) AS s, window_start, window_end\n")
        assert "columns   ts timestamp, k string, v int (all 3)" in ended.out

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            (SQL, [], "the columns of M are not known: add --stream M=PATH, or explain a script"),
            ("WITH a AS (SELECT x FROM N) SELECT x FROM a", [], "the columns of N are not known"),
            ("SELECT 'open", [], "line 1, column 8: expected a closing '"),
            ("CREATE STREAM M FROM parquet 'x' SCHEMA (a INT)", [], "the script has no query to explain"),
            ("CREATE QUERY q AS SELECT a FROM M", [], "query q: unknown stream M"),
            (SCRIPT, ["--stream", "M=x.csv"], "is a script and has its own streams"),
        ],
    )
    def test_errors_are_one_line(self, run: Run, tmp_path: Path, text: str, options: list[str], message: str) -> None:
        (tmp_path / "q.sql").write_text(text)
        assert message in failed(run("explain", str(tmp_path / "q.sql"), *options))


FLOW = """
CREATE STREAM M FROM parquet 'in' OPTIONS (max_files_per_batch = 1) SCHEMA (ts TIMESTAMP, k STRING, v INT)
    PROGRESS ON ts WITHIN 10 seconds;
CREATE QUERY sums AS SELECT k, count(*) AS n, sum(v) AS s [RANGE 20 seconds, SLIDE 10 seconds] FROM M GROUP BY k;
CREATE SINK FOR sums INTO parquet 'out';
"""
SUMS = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 20 seconds, SLIDE 10 seconds, WA ts] FROM M GROUP BY k"
COMMAND = [sys.executable, "-c", "import sys; from headgate.cli import main; sys.exit(main())"]


def write_seconds(folder: Path, first: int, last: int) -> None:
    """A file with a tuple for each of these seconds, which appears at once and whole."""
    seconds = range(first, last)
    times = pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us", "UTC"))
    keys, values = pa.array(["ab"[s % 2] for s in seconds]), pa.array(seconds, pa.int32())
    folder.mkdir(exist_ok=True)
    name = f"{first:06d}.parquet"
    pq.write_table(pa.table({"ts": times, "k": keys, "v": values}), folder / f".{name}")
    os.utime(folder / f".{name}", (first, first))  # Spark takes files by their times, which might else be the same.
    (folder / f".{name}").rename(folder / name)


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`headgate run` in a process group of its own, as a shell starts it."""
    process = subprocess.Popen(
        [*COMMAND, "run", "flow.sql"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: subprocess.Popen[str], start: str) -> list[str]:
    """What the process says up to a line that starts like this."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line.rstrip("\n"))
        if line.startswith(start):
            return said
    raise AssertionError(said)


def check_sums(spark: SparkSession, folder: Path) -> None:
    """What was delivered is what `hg.evaluate` says of all windows that progress has passed."""
    given = spark.read.parquet(f"{folder}/in")
    last = given.selectExpr("max(ts) - INTERVAL 10 SECONDS AS progress")
    exact = hg.evaluate(SUMS, M=given)
    passed = exact.join(last, exact.window_end <= last.progress).drop("progress")
    assert_same(collected(spark.read.parquet(f"{folder}/out")), collected(passed))


class TestRun:
    def test_it_runs_until_it_is_stopped_and_goes_on_from_there(self, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "flow.sql").write_text(FLOW)
        for first in (0, 25, 50):
            write_seconds(tmp_path / "in", first, first + 25)
        with running(tmp_path) as process:
            said = lines_until(process, "batch 2: ")
            assert said[:3] == [
                "Stream M from parquet, PROGRESS ON ts WITHIN 10 seconds",
                "Query sums into parquet 'out'",
                "Checkpoint flow.checkpoint, new",
            ]
            assert [line.split(" in ")[0] for line in said[3:]] == [f"batch {n}: 25 rows" for n in range(3)]
            assert "M 1970-01-01 00:01:04" in said[-1]
            os.killpg(process.pid, signal.SIGINT)  # As Ctrl-C does: to all of its processes.
            out, err = process.communicate()
        assert (process.returncode, out) == (0, "")
        assert err.splitlines() == [
            "stopping after the batch that is running; Ctrl-C again quits at once",
            "stopped after batch 2; run it again to go on from there",
        ]
        check_sums(spark, tmp_path)

        write_seconds(tmp_path / "in", 75, 100)
        with running(tmp_path) as process:
            said = lines_until(process, "batch 3: ")
            assert said[2] == "Checkpoint flow.checkpoint, resumed after batch 2"
            write_seconds(tmp_path / "in", 100, 140)
            assert lines_until(process, "batch 4: ")[-1].startswith("batch 4: 40 rows in ")
            process.terminate()
            out, err = process.communicate()
        assert (process.returncode, out) == (0, "")
        assert err.endswith("stopped after batch 4; run it again to go on from there\n")
        check_sums(spark, tmp_path)

    def test_once(self, run: Run, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = FLOW.replace("'in'", f"'{tmp_path}/in'").replace("'out'", f"'{tmp_path}/out'")
        (tmp_path / "flow.sql").write_text(script)
        command = ["run", str(tmp_path / "flow.sql"), "--once", "--checkpoint", str(tmp_path / "kept")]
        write_seconds(tmp_path / "in", 0, 50)
        ended = run(*command)
        assert (ended.code, ended.out) == (0, "")
        *_, last, done = ended.err.splitlines()
        assert last.startswith("batch 0: 50 rows in ")
        assert done == "done after batch 0; run it again to go on from there"
        write_seconds(tmp_path / "in", 50, 90)
        monkeypatch.setenv("FORCE_COLOR", "1")  # A terminal, as far as anyone can see.
        ended = run(*command)
        assert (ended.code, ended.out) == (0, "")
        assert all(words in ended.err for words in ("batch 1", "40 rows in ", " rows/s", "90 rows", "days behind"))
        check_sums(spark, tmp_path)

    @pytest.mark.usefixtures("spark")
    def test_a_flow_that_fails_says_why(self, run: Run, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "m.csv").write_text(CSV.replace(",2\n", ",two\n"))
        script = FLOW.replace("parquet 'in'", f"csv '{tmp_path}/in'").replace("'out'", f"'{tmp_path}/out'")
        script = script.replace("max_files_per_batch = 1", "mode = 'FAILFAST', header = true")
        (tmp_path / "flow.sql").write_text(script)
        ended = run("run", str(tmp_path / "flow.sql"), "--once")
        assert (ended.code, ended.out) == (1, "")
        (error,) = (line for line in ended.err.splitlines() if line.startswith("error: "))
        assert "m.csv" in error
        assert '"two"' in error

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            (SQL, [], "line 1, column 1: expected CREATE QUERY name AS before a query in a script"),
            (SCRIPT.replace("gap = 10", "gap = 0"), [], "query busy: gap=0: give the number of answers"),
            (FLOW, ["--target", "soon"], "--target soon: give a time above zero, such as '5 seconds'"),
            (FLOW, ["--trigger", "soon"], "--trigger soon: give a time, such as '5 seconds'"),
            (FLOW, ["--trigger", "5"], "--trigger 5: give a time, such as '5 seconds'"),
            (FLOW, ["--trigger", "5 seconds", "--once"], "leave --trigger out"),
        ],
    )
    def test_errors_are_one_line(self, run: Run, tmp_path: Path, text: str, options: list[str], message: str) -> None:
        (tmp_path / "q.sql").write_text(text)
        assert message in failed(run("run", str(tmp_path / "q.sql"), *options))

    def test_a_script_from_stdin_needs_a_checkpoint(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(FLOW))
        assert "add --checkpoint DIR" in failed(run("run", "-"))

    def test_a_second_interrupt_quits_at_once(self) -> None:
        program = """
import time
from headgate.cli.run import _interrupts
with _interrupts() as wish:
    print("ready", flush=True)
    while not wish.stop:
        time.sleep(0.01)
    print("asked", flush=True)
    while True:
        time.sleep(0.01)
"""
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for word in ("ready\n", "asked\n"):
                assert process.stdout.readline() == word
                process.send_signal(signal.SIGINT)
            assert process.communicate() == ("", "")
            assert process.returncode == 130


@pytest.mark.usefixtures("spark")
def test_demo(run: Run) -> None:
    ended = run("demo", "--packets", "2000")
    assert (ended.code, ended.err) == (0, "")
    query, plan, table = (ended.out.index(part) for part in ("SELECT srcIP", "└─ Aggregate", "10.0.0.1 "))
    assert query < plan < table
    shown = [line.split() for line in ended.out[table:].splitlines()]
    assert [host for host, *_ in shown[:1]] == ["10.0.0.1"]
    counts = [int(row[1]) for row in shown[:10]]
    assert counts == sorted(counts, reverse=True)
    assert "2,000 packets, 14 windows" in ended.out


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.startswith("headgate 0.")
    for arguments in ([], ["--help"]):
        ended = run(*arguments)
        assert (ended.code, ended.err) == (0, "")
        assert all(name in ended.out for name in ("query", "explain", "run", "demo"))


def test_an_unknown_command_is_one_line(run: Run) -> None:
    assert "'quary'" in failed(run("quary"))


def test_an_interrupt_is_quiet(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("headgate.cli.explain.read_text", interrupted)
    assert run("explain", "flow.sql") == Ended(130, "", "")


def test_a_real_run_prints_the_answer_and_nothing_else(tmp_path: Path) -> None:
    """In a process of its own, where Spark starts: its notes and stacks must not be seen."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.csv").write_text(CSV)
    (tmp_path / "flow.sql").write_text(
        f"CREATE STREAM M FROM csv '{tmp_path}/in' OPTIONS (header = true) SCHEMA (ts TIMESTAMP, k STRING, v INT)"
        " PROGRESS ON ts ORDERED;"
        " CREATE QUERY fine AS SELECT k, count(*) AS n [RANGE 2 seconds] FROM M GROUP BY k;"
        " CREATE QUERY wrong AS SELECT raise_error('no ' || k) AS x FROM M WHERE v = 2"
    )
    program = """
import sys
from headgate.cli import main
stream = f"M={sys.argv[1]}/in/m.csv"
good = main(["query", "SELECT k FROM M WHERE v = 2", "--stream", stream, "--format", "csv"])
bad = main(["query", "SELECT 1 / (v - 1) AS x FROM M", "--stream", stream, "--format", "csv"])
failed = main(["run", f"{sys.argv[1]}/flow.sql", "--once"])
sys.exit(100 * good + 10 * bad + failed)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 21
    assert ended.stdout == "k,sampling_rate\nb,1.0\n"
    first, *about, last = ended.stderr.splitlines()
    assert first.startswith("error: Division by zero")
    assert [line.split()[0] for line in about] == ["Stream", "Query", "Query", "Checkpoint"]
    assert last == "error: query wrong: no b"
