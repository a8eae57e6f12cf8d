"""docs/watching.md names every field of a status, every event and every part of the handle, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headgate as hg
from headgate.observe.listeners import METHODS
from headgate.observe.status import error_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
PAIRS = "SELECT a.ts AS l, b.ts AS r FROM Main AS a [RANGE 5, WA ts], Main AS b [RANGE 5, WA ts] WHERE a.k = b.k"
#: Fields that hold figures by names of the user's: of streams, queries and the like.
BY_NAME = {"progress", "closed", "rows", "bad", "answers", "late", "shed", "dropped", "last_batch.seconds"}
BY_NAME |= {f"shedding.{name}" for name in ("rates", "subsets", "suspended", "errors", "missed", "streams")}
BY_NAME |= {"shedding.selectivity", "shedding.values", "joins.*.left_out", "joins.*.shares"}


def column(section: str, number: int) -> list[str]:
    """The names in a column of the table of a section."""
    body = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[number] for line in body.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`([^`(]+)[^`]*`", cell)]


def fields(found: Any, at: str = "") -> list[str]:
    """The names of all fields below a place."""
    if not isinstance(found, dict) or at in BY_NAME:
        return []
    names = {f"{at}.*" if at == "joins" else f"{at}.{name}".lstrip("."): inner for name, inner in found.items()}
    return [own for name, inner in names.items() for own in ([name] * (at != "joins") + fields(inner, name))]


def test_every_field_of_a_status_has_a_line(spark: SparkSession, tmp_path: Path) -> None:
    flow = hg.Flow(spark, "page", tmp_path / "checkpoint")
    rows = spark.createDataFrame([(1, "a"), (2, "a")], "ts INT, k STRING")
    flow.stream("Main", rows, progress=hg.progress("ts", ordered=True))
    flow.query("pairs", PAIRS, policy=hg.subset(drop=0.5))
    status = {**flow.run_available().status(), "error": error_words(hg.FlowError("no room"))}
    assert column("The status", 1) == fields(status)


def test_every_event_has_a_line() -> None:
    kinds = [kind.__name__ for kind in hg.events.Event.__subclasses__() if kind.__module__ == hg.events.__name__]
    assert sorted(column("Events", 1)) == sorted(kinds)
    assert sorted(column("Events", 3)) == sorted(set(METHODS) - {"on_event"})


@pytest.mark.parametrize("name", column("The handle", 1))
def test_the_handle_has_what_the_page_names(name: str) -> None:
    assert hasattr(hg.Run, name) or name in ("id", "run_id", "name", "resumed_after")
