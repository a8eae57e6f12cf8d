"""What the documentation shows works: Python blocks run, SQL blocks parse, commands exist, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.test_layers import ORDER, SOURCE

from headgate.cli import main
from headgate.lang import parse_query, parse_script, to_sql

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
PACKAGES = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    """A page by its path, since several are called README."""
    return str(page.relative_to(ROOT))


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{name_of(page)}:{found.start()}", found[2])
        for page in PAGES
        for found in BLOCK.finditer(page.read_text())
        if found[1] == language
    ]


@pytest.mark.parametrize(("place", "code"), blocks("python"))
def test_python_runs(spark: SparkSession, place: str, code: str) -> None:
    exec(compile(code, place, "exec"), {"__name__": "__main__"})
    assert spark.range(1).count() == 1  # The session is still there for the next one.


@pytest.mark.parametrize(("place", "text"), blocks("sql"))
def test_sql_parses_and_prints_back(place: str, text: str) -> None:
    if text.startswith("CREATE"):
        assert parse_script(text), place
    else:
        query = parse_query(text)
        assert parse_query(to_sql(query)) == query, place


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", page.read_text())) & set(COMMANDS) <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_are_named_exist(page: Path) -> None:
    for module in re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", page.read_text()):
        if module.split("/")[0] in PACKAGES:
            assert (SOURCE / module).exists(), module


def test_the_architecture_is_one_page_and_names_every_package_in_order() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []
    named = [found[1] for line in lines if (found := re.match(r"\| `([a-z]+)/", line))]
    assert {*named} == PACKAGES
    order = [layer.split(".")[0] for layer in ORDER]
    first = [*dict.fromkeys(name for name in named if name in order)]
    assert first == [*dict.fromkeys(name for name in order if name in named)]


COMMANDS = ("setup", "test", "check", "demo", "bench", "format", "lock", "clean", "fuzz")


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "scripts").glob("*.sql")), ids=lambda path: path.name)
def test_example_scripts_explain(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script)]) == 0
    assert "Query talkers" in capsys.readouterr().out


def test_no_road_visits_a_file_twice() -> None:
    page = (ROOT / "docs/journey.md").read_text()
    roads = [re.findall(r"^\d+\. `([a-z_/]+\.py)`", road, re.MULTILINE) for road in page.split("\n## ")[1:]]
    assert [len(road) for road in roads] == [14, 11, 15]
    assert [file for road in roads for file in road if not (SOURCE / file).exists()] == []
    assert all(len(road) == len({*road}) for road in roads)
