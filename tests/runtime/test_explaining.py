"""What a flow and its run say of themselves: as the command line says it of a script, in lengths that people read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import headgate as hg
from headgate.api.scripts import flow_of
from headgate.cli.explain import explain_script
from headgate.lang import parse_script
from headgate.plan.logical.script import bind_script

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCRIPT = """
    CREATE STREAM Main FROM parquet '{tmp}/in' SCHEMA (ts TIMESTAMP, k STRING, v INT)
      PROGRESS ON ts WITHIN 10 seconds IDLE 30 seconds;
    CREATE TABLE names FROM csv '{tmp}/names' SCHEMA (k STRING, name STRING);
    CREATE QUERY talkers WITH (shed = 'estimate', rate = 0.5, strategy = 'paned') AS
      SELECT k, count(*) AS n, avg(v) AS mean [RANGE 1 minute, SLIDE 1 minute] FROM Main GROUP BY k;
    CREATE QUERY pairs AS
      SELECT a.ts AS l, b.ts AS r FROM Main AS a [RANGE 3 minutes, WA ts], Main AS b [RANGE 90 seconds, WA ts]
      WHERE a.k = b.k;
    CREATE QUERY firsts AS SELECT DISTINCT ON (k) ts, k FROM Main [RANGE 2 hours, WA ts];
    CREATE QUERY deep AS
      SELECT max(n) AS most [RANGE 1 hour, SLIDE 10 minutes]
      FROM (SELECT k, count(*) AS n [RANGE 5 minutes, SLIDE 5 minutes] FROM Main GROUP BY k);
    CREATE QUERY named AS
      SELECT names.name, median(v) AS mid [RANGE 1 day, SLIDE 1 day, WA Main.ts]
      FROM Main JOIN names ON Main.k = names.k GROUP BY names.name;
    CREATE SINK FOR talkers INTO parquet '{tmp}/talkers';
    CREATE SINK FOR talkers LATE INTO parquet '{tmp}/late';
    CREATE SINK FOR Main BAD INTO parquet '{tmp}/bad';
"""


def parts(text: str) -> dict[str, list[str]]:
    """The parts of a text by their first lines."""
    found = [part.splitlines() for part in text.split("\n\n")]
    return {first: rest for first, *rest in found}


def test_a_flow_says_what_the_command_line_says_of_its_script(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("in", "names"):
        (tmp_path / name).mkdir()
    script = bind_script(parse_script(SCRIPT.format(tmp=tmp_path)))
    flow = flow_of(script, spark, "said", str(tmp_path / "checkpoint"))
    assert flow.explain() == explain_script(script)

    run = flow.run_available()
    assert run.explain().startswith(flow.explain())
    said = parts(run.explain().removeprefix(flow.explain()).strip())
    assert list(said) == [
        "Table 0, kept for talkers, deep.1",
        "Table 1, kept for named",
        "Table 2, kept for named",
        "Table 3, kept for deep",
        "Tuples, kept for pairs",
        "Tuples, kept for firsts",
    ]
    assert said["Table 0, kept for talkers, deep.1"] == [
        "  of        Main by k",
        "  panes     1 minute long",
        "  calls     count(*), avg(v)",
    ]
    assert said["Table 3, kept for deep"][1:] == ["  panes     10 minutes long", "  calls     max(n)"]
    assert said["Table 2, kept for named"][1:] == [
        "  panes     1 day long",
        "  calls     median(Main.v), from a count for each value",
    ]
    assert said["Tuples, kept for pairs"] == ["  left      for 3 minutes of a.ts", "  right     for 90 seconds of b.ts"]
    assert said["Tuples, kept for firsts"] == ["  all       for 2 hours of ts"]


def test_no_number_is_for_machines(spark: SparkSession, tmp_path: Path) -> None:
    packets = hg.sources.packets(rate=200, hosts=5, rows=4_000, rows_per_batch=2_000)
    flow = hg.Flow(spark, "said", tmp_path / "checkpoint")
    flow.stream("Main", packets, progress=hg.progress("ts", within="2 seconds"))
    keys = "SELECT srcIP, count(*) AS n [RANGE 4 seconds, SLIDE 1 second] FROM Main GROUP BY srcIP"
    flow.query("sampled", keys, policy=hg.estimate(weight=2))
    flow.query("gaps", keys, policy=hg.subset(gap=3))
    flow.query("exactly", keys, strategy="eager")
    flow.sink("gaps", print)
    run = flow.run_available(overload=hg.overload("100 milliseconds"))
    text = f"{run.explain()}\n{run.status()['shedding']['costs']}"
    assert "Query gaps with shed = 'subset', gap = 3\n  into the function print\n" in text
    assert "Query sampled with shed = 'estimate', weight = 2.0\n" in text
    assert "  panes     whole windows: 4 seconds long, every second\n" in text
    assert "s more for each of the batches that close windows" in text
    assert re.findall(r"\de[+-]\d|\d{7}|_hg_|_agg", text) == []
