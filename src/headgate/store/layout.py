"""Manifests and decisions as JSON, with the version of their layout."""

from __future__ import annotations

import json
import zlib
from typing import Any

from headgate.errors import StateError
from headgate.protocol.decision import Decision, Drops
from headgate.protocol.manifest import (
    Manifest,
    ProgressPart,
    QueriesPart,
    RunsPart,
    SourcePart,
    StateFiles,
    StatePart,
    WindowsPart,
)
from headgate.store.migrations import LAYOUT, migrated

_PARTS = {
    "source": SourcePart,
    "queries": QueriesPart,
    "progress": ProgressPart,
    "windows": WindowsPart,
    "runs": RunsPart,
}


def sealed(document: dict[str, Any]) -> str:
    """A document as text that tells whether it is whole.

    >>> whole(sealed({"a": 1})), whole(sealed({"a": 1})[:-3])
    ({'a': 1}, None)
    """
    body = json.dumps(document, sort_keys=True)
    return f"{body}\n{zlib.crc32(body.encode()):08x}\n"


def whole(text: str | None) -> dict[str, Any] | None:
    """The document of a sealed text, or None if it is not whole."""
    body, newline, rest = (text or "").partition("\n")
    if not newline or rest != f"{zlib.crc32(body.encode()):08x}\n":
        return None
    document: dict[str, Any] = json.loads(body)
    return document


def manifest_text(manifest: Manifest) -> str:
    """A manifest as it is written."""
    # Not by asdict, which copies all that is in there, however deep.
    state = manifest.state
    files = {"files": [vars(f) for f in state.files], "tuples": [vars(f) for f in state.tuples]}
    parts = {name: vars(getattr(manifest, name)) for name in _PARTS}
    return sealed({"version": LAYOUT, **vars(manifest), **parts, "state": {**vars(state), **files}})


def manifest_of(document: dict[str, Any], path: str) -> Manifest:
    """The manifest of a document, which was found in a file of this path."""
    document = migrated("manifest", document, path)
    state = document.pop("state")
    files, tuples = (tuple(map(_files, state.pop(name))) for name in ("files", "tuples"))
    parts: dict[str, Any] = {name: kind(**document.pop(name)) for name, kind in _PARTS.items()}
    return Manifest(state=StatePart(**state, files=files, tuples=tuples), **parts, **document)


def decision_text(decision: Decision) -> str:
    """A decision as it is written."""
    return sealed({"version": LAYOUT, **vars(decision), "drops": vars(decision.drops)})


def decision_of(document: dict[str, Any], path: str, batch: int) -> Decision:
    """The decision of a document, which was found in a file of this path."""
    document = migrated("decision", {"batch": batch, **document}, path)
    try:
        drops = Drops(**document.pop("drops"))
        return Decision(**{**document, "ended": tuple(document["ended"])}, drops=drops)
    except (KeyError, TypeError) as error:
        raise StateError(f"{path} is no decision of a batch ({error}): put it back as it was") from None


def _files(document: dict[str, Any]) -> StateFiles:
    spans = {axis: (first, last) for axis, (first, last) in document["spans"].items()}
    return StateFiles(**{**document, "names": tuple(document["names"]), "spans": spans})
