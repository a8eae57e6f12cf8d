"""Which package may import which: a newcomer can trust the folder tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headgate"
#: From the ideas to what users touch: each layer imports only layers before it.
ORDER = [
    "errors",
    "given",
    "windows",
    "lang",
    "aggregates",
    "plan.logical",
    "plan",
    "plan.stream",
    "progress",
    "protocol",
    *(f"observe.{name}" for name in ("plain", "events", "times", "report", "listeners")),
    "reference",
    "sql",
    "spark",
    "bounded",
    "shed",
    "sharing",
    "incremental",
    *(f"shed.join.{name}" for name in ("sql", "look", "room")),
    "connect",
    "store",
    "shed.live",
    "batch",
    "observe",
    "api",
    "testing",
    "cli",
]
#: Layers that never import Spark: what they say can be tested without it.
PURE = ORDER[: ORDER.index("sql")]
#: The same holds for these modules of `shed`.
PURE_SHEDDING = [
    *("builtin", "controller", "losses", "fit", "policy", "shape"),
    *(f"learn.{name}" for name in ("costs", "statistics")),
    *(f"estimate.{name}" for name in ("estimators", "intervals", "placement", "plan", "rates", "tree")),
    *(f"subset.{name}" for name in ("dropped", "fill", "groups", "ledger", "needs", "plan", "rules")),
    *(f"join.{name}" for name in ("coins", "cost", "eviction", "keys", "plan", "planner", "random", "sample")),
    *(f"join.{name}" for name in ("semantic", "statistics", "stock", "work")),
]


def layer_of(module: str) -> str | None:
    """The layer that a module belongs to, the most particular one."""
    found = [layer for layer in ORDER if module == layer or module.startswith(f"{layer}.")]
    return max(found, key=len, default=None)


def modules() -> dict[str, Path]:
    """All modules below headgate, by their names."""
    paths = (p.relative_to(SOURCE) for p in SOURCE.rglob("*.py"))
    names = {".".join(p.with_suffix("").parts).removesuffix(".__init__"): SOURCE / p for p in paths}
    return {name: path for name, path in names.items() if name != "__init__"}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def knows_spark(path: Path) -> bool:
    return any(name.split(".")[0] in ("pyspark", "py4j", "pyarrow") for name in imports(path))


def test_every_module_is_in_a_layer() -> None:
    assert [name for name in modules() if layer_of(name) is None] == []


@pytest.mark.parametrize("layer", ORDER)
def test_a_layer_imports_only_layers_before_it(layer: str) -> None:
    allowed = ORDER[: ORDER.index(layer) + 1]
    for name, path in modules().items():
        if layer_of(name) == layer:
            used = {layer_of(i.removeprefix("headgate.")) for i in imports(path) if i.startswith("headgate.")}
            assert used - {None} <= {*allowed}, name


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_never_import_spark(layer: str) -> None:
    assert [name for name, path in modules().items() if layer_of(name) == layer and knows_spark(path)] == []


def test_what_shedding_plans_is_pure() -> None:
    own = modules()
    assert [name for name in PURE_SHEDDING if knows_spark(own[f"shed.{name}"])] == []
