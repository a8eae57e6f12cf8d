"""The decisions of a flow on disk: one that has no manifest is of a batch that was begun and not committed."""

from __future__ import annotations

from headgate.protocol.decision import Decision
from headgate.protocol.files import Files
from headgate.protocol.names import batch_name
from headgate.store.layout import decision_of, decision_text, whole


class Decisions:
    """The decisions in a folder."""

    def __init__(self, folder: Files) -> None:
        self._folder = folder

    def of(self, batch: int) -> Decision | None:
        """The decision of a batch, or None if there is none that is whole."""
        name = batch_name(batch)
        document = whole(self._folder.read(name))
        return None if document is None else decision_of(document, f"{self._folder.path}/{name}", batch)

    def write(self, decision: Decision) -> None:
        """Writes a decision down."""
        self._folder.write(batch_name(decision.batch), decision_text(decision))

    def clear(self) -> None:
        """Deletes all decisions: their batches have happened."""
        for file in self._folder.files():
            self._folder.delete(file.name)
