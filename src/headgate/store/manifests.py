"""The manifests of a flow on disk: the newest one that is whole holds.

A manifest ends with a checksum: one that a crash cut short is none, and the one before it holds.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from headgate.errors import StateError
from headgate.protocol.manifest import Manifest, StateFiles
from headgate.protocol.names import batch_name

if TYPE_CHECKING:
    from headgate.spark.folder import FileInfo, Folder

VERSION = 7
#: An older layout that lacks what only tells runs apart.
_READ = (6, VERSION)
_KEPT = 3
"""How many manifests are kept: the last one, and a few before it to look back at."""


class Manifests:
    """The manifests in a folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def last(self) -> Manifest:
        """The last whole manifest; an empty one if nothing has happened yet."""
        return self._last(self._there())

    def damaged(self, after: int) -> list[str]:
        """The paths of manifests of later batches, none of which is whole."""
        later = [file for file in self._there() if int(file.name) > after]
        return [f"{self._folder.path}/{file.name}" for file in later if self._whole(file) is None]

    def check_last(self, batch: int, mark: str) -> None:
        """Raises an error if another run than the one of this mark has committed a later batch."""
        later = [file for file in self._there() if int(file.name) > batch]
        last = self._last(later)
        if last.batch > batch and last.mark(last.batch) != mark:
            raise self._taken(last)

    def commit(self, manifest: Manifest, mark: str) -> None:
        """Forgets an old manifest and writes this one, after which its batch has happened.

        It is written by the first run that gets there; the `mark` tells this one from others. The one that comes second
        gets an error, and changes nothing.
        """
        # In this order, or a crash in between would leave the old one behind for good.
        if manifest.batch >= _KEPT:
            self._folder.delete(batch_name(manifest.batch - _KEPT))
        name = batch_name(manifest.batch)
        text = sealed({"version": VERSION, **asdict(manifest)})
        if not self._folder.write_new(name, text, mark):
            self.check_last(manifest.batch - 1, mark)
            self._folder.write(name, text)  # A crash cut it short.

    def _there(self) -> list[FileInfo]:
        """The files of manifests, the newest first."""
        files = [file for file in self._folder.files() if file.name.isdigit()]
        return sorted(files, key=lambda file: int(file.name), reverse=True)

    def _whole(self, file: FileInfo) -> dict[str, Any] | None:
        return whole(self._folder.read(file.name, most=file.size or 1))

    def _last(self, files: list[FileInfo]) -> Manifest:
        for file in files:
            document = self._whole(file)
            if document is not None:
                return _manifest(document, f"{self._folder.path}/{file.name}")
        return Manifest()

    def _taken(self, by: Manifest) -> StateError:
        checkpoint = self._folder.path.rpartition("/")[0]
        who = f" ({by.by})" if by.by else ""
        return StateError(
            f"another run{who} has committed batch {by.batch} of the checkpoint {checkpoint} meanwhile: this one stops"
            " and leaves everything as it is; have one run at a time on a checkpoint, and the next goes on from there"
        )


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


def _manifest(document: dict[str, Any], path: str) -> Manifest:
    version = document.pop("version", None)
    if version not in _READ:
        raise StateError(
            f"{path} has the layout {version}, and this Headgate knows layout {VERSION}: run the version that wrote it,"
            " or start with a new checkpoint"
        )
    files = tuple(_state_files(f) for f in document.pop("files"))
    tuples = tuple(_state_files(f) for f in document.pop("tuples"))
    return Manifest(files=files, tuples=tuples, **document)


def _state_files(document: dict[str, Any]) -> StateFiles:
    spans = {axis: (first, last) for axis, (first, last) in document["spans"].items()}
    return StateFiles(**{**document, "names": tuple(document["names"]), "spans": spans})
