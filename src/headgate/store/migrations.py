"""Layouts of checkpoints: what earlier versions wrote is brought up to date as it is read.

A migration takes a document from one layout to the next. To change the layout, raise LAYOUT and add a migration from
the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from headgate.errors import StateError

LAYOUT = 8
Kind = Literal["manifest", "decision"]
Document = dict[str, Any]

#: Where layout 8 has what earlier manifests had in one heap: by part, the new names with the old ones.
_PARTS: dict[str, dict[str, str]] = {
    "source": {"batch": "source_batch", "streams": "sources", "named": "named"},
    "queries": {"texts": "queries", "begun": "begun", "columns": "columns"},
    "progress": {
        "trackers": "progress",
        "promised": "promised",
        "highest": "highest",
        "numbered": "numbered",
        "ended": "ended",
    },
    "windows": {"closed": "closed", "first": "first", "boxes": "boxes", "told": "told", "skipped": "skipped"},
    "state": {"tables": "tables", "files": "files", "tuples": "tuples"},
    "runs": {"marks": "runs", "by": "by"},
}


def migrated(kind: Kind, document: Document, path: str) -> Document:
    """A document in the newest layout, without the version that it says; `path` is the file that it is from."""
    layout = document.pop("version", None if kind == "manifest" else 7)
    while layout != LAYOUT:
        step = _STEPS[kind].get(layout) if isinstance(layout, int) else None
        if step is None:
            raise StateError(
                f"{path} has the layout {layout}, and this Headgate knows the layouts {min(_STEPS[kind])} to {LAYOUT}:"
                " run the version that wrote it, or start with a new checkpoint"
            )
        layout, document = layout + 1, step(document)
    return document


def _with_runs(document: Document) -> Document:
    """Layout 7 tells runs apart, and knows the columns that queries use."""
    return {"runs": [], "by": "", "columns": {}, "promised": {}, **document}


def _in_parts(document: Document) -> Document:
    """Layout 8 has a part for each owner."""
    parts = {
        part: {new: document[old] for new, old in names.items() if old in document} for part, names in _PARTS.items()
    }
    return {**{name: document[name] for name in ("batch", "counters", "shedding")}, **parts}


def _with_drops(document: Document) -> Document:
    """Layout 8 calls what is left out of a batch by that name."""
    return {**{name: value for name, value in document.items() if name != "shed"}, "drops": document["shed"]}


def _as_it_is(document: Document) -> Document:
    return document


_STEPS: dict[Kind, dict[int, Callable[[Document], Document]]] = {
    "manifest": {6: _with_runs, 7: _in_parts},
    "decision": {6: _as_it_is, 7: _with_drops},
}
