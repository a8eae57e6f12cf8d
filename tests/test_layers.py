"""Which package may import which: a newcomer can trust the folder tree."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "headgate"
#: Each layer with the layers that it may use. Only the last three know Spark.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "given": {"errors"},
    "windows": {"errors", "given"},
    "lang": {"errors", "given"},
    "aggregates": {"errors", "given"},
    "plan": {"errors", "given", "windows", "lang", "aggregates"},
    "progress": {"errors", "given", "windows", "lang", "plan"},
    "reference": {"errors", "given", "windows", "lang", "aggregates", "plan"},
    "shedding": {"errors", "given", "windows", "lang", "aggregates", "plan", "progress"},
    "operators": {"errors", "given", "windows", "aggregates", "plan", "progress", "shedding"},
    "runtime": {"errors", "given", "windows", "lang", "aggregates", "plan", "progress", "shedding", "operators"},
    "cli": {"errors", "given", "windows", "lang", "aggregates", "plan", "progress", "operators", "runtime", "shedding"},
}
PURE = ["errors", "given", "windows", "lang", "aggregates", "plan", "progress", "reference", "shedding"]


def modules(layer: str) -> list[Path]:
    return sorted((SOURCE / layer).rglob("*.py")) or [SOURCE / f"{layer}.py"]


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_every_package_is_a_layer() -> None:
    names = {p.stem for p in SOURCE.iterdir() if p.suffix == ".py" or (p / "__init__.py").exists()}
    assert names - {"__init__", "__pycache__"} == LAYERS.keys()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_only_layers_below_it(layer: str) -> None:
    allowed = LAYERS[layer] | {layer}
    for path in modules(layer):
        used = {name.split(".")[1] for name in imports(path) if name.startswith("headgate.")}
        assert used & LAYERS.keys() <= allowed, path


@pytest.mark.parametrize("layer", PURE)
def test_pure_layers_never_import_spark(layer: str) -> None:
    for path in modules(layer):
        assert not any(name.split(".")[0] in ("pyspark", "py4j", "pyarrow") for name in imports(path)), path
