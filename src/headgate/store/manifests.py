"""The manifests of a flow on disk: the newest one that is whole holds.

A manifest ends with a checksum: one that a crash cut short is none, and the one before it holds.
"""

from __future__ import annotations

from typing import Any

from headgate.errors import StateError
from headgate.protocol.files import FileInfo, Files
from headgate.protocol.manifest import Manifest
from headgate.protocol.names import batch_name
from headgate.store.layout import manifest_of, manifest_text, whole

#: How many manifests are kept: the last one, and a few before it to look back at.
_KEPT = 3


class Manifests:
    """The manifests in a folder."""

    def __init__(self, folder: Files) -> None:
        self._folder = folder

    def last(self) -> Manifest:
        """The last whole manifest; an empty one if nothing has happened yet."""
        return self._last(self._there())

    def damaged(self, after: int) -> list[str]:
        """The paths of manifests of later batches, none of which is whole."""
        later = [file for file in self._there() if int(file.name) > after]
        return [f"{self._folder.path}/{file.name}" for file in later if self._whole(file) is None]

    def check_last(self, batch: int, mark: str) -> None:
        """Raises an error if another run than the one with this mark has committed a later batch."""
        later = [file for file in self._there() if int(file.name) > batch]
        last = self._last(later)
        if last.batch > batch and last.mark(last.batch) != mark:
            raise self._taken(last)

    def commit(self, manifest: Manifest, mark: str) -> None:
        """Forgets an old manifest and writes this one. Then its batch has happened.

        The first run that gets here writes it; `mark` tells this one from others. A run that comes second gets an
        error, and changes nothing.
        """
        # In this order, or a crash in between would leave the old one there for good.
        if manifest.batch >= _KEPT:
            self._folder.delete(batch_name(manifest.batch - _KEPT))
        name, text = batch_name(manifest.batch), manifest_text(manifest)
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
                return manifest_of(document, f"{self._folder.path}/{file.name}")
        return Manifest()

    def _taken(self, by: Manifest) -> StateError:
        checkpoint = self._folder.path.rpartition("/")[0]
        who = f" ({by.runs.by})" if by.runs.by else ""
        return StateError(
            f"another run{who} has committed batch {by.batch} of the checkpoint {checkpoint} meanwhile: this one stops"
            " and leaves everything as it is; have one run at a time on a checkpoint, and the next goes on from there"
        )
