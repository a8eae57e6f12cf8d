"""A folder on any file system that Hadoop knows: local disk, HDFS, an object store."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from headgate.errors import StateError
from headgate.protocol.files import FileInfo
from headgate.spark.failures import told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


#: Where Hadoop's committer has the files of a task, before they are moved.
_COMMITTER = "_temporary/0/_temporary"


class Folder:
    """Files by their names in a folder. Nothing here renames a folder, which object stores cannot do at once."""

    def __init__(self, spark: SparkSession, path: str, file_system: Any = None) -> None:
        self.path = path.rstrip("/")
        self._spark = spark
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(self.path)
        self._fs = file_system or self._file_system()

    def _file_system(self) -> Any:
        try:
            return self._root.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf())
        except (Py4JJavaError, PySparkException) as error:
            raise StateError(f"{self.path} is out of reach: {told(error, '')}") from None

    def __truediv__(self, name: str) -> Folder:
        return Folder(self._spark, f"{self.path}/{name}", self._fs)

    @cached_property
    def place(self) -> str:
        """Where it is, the same however its path is written."""
        if self.is_local:
            return os.path.realpath(str(self._fs.makeQualified(self._root).toUri().getPath()))
        return str(self._fs.makeQualified(self._root).toString())

    @cached_property
    def is_local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return str(self._fs.getUri().getScheme()) == "file"

    def prepare(self) -> None:
        """Makes it an empty folder that Spark is about to write to."""
        self.delete()
        if self.is_local:
            self._local_path(_COMMITTER).mkdirs()

    def read(self, name: str, most: int | None = None) -> str | None:
        """The text of a file, or None if there is none, or one that the file system itself knows to be cut short.

        No more than so many bytes are read: what is no plain file may have no end.
        """
        path = self._path(name)
        try:
            if not self._fs.exists(path):
                return None
            stream = self._fs.open(path)
            try:
                if most is not None:
                    return bytes(stream.readNBytes(most)).decode("utf-8", "replace")
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "ChecksumException":
                return None
            raise StateError(f"cannot read {self.path}/{name}: {_reason(error)}") from None

    def write(self, name: str, text: str) -> None:
        """Makes or replaces a file. A crash may leave it cut short, so the text has to tell whether it is whole."""
        try:
            stream = self._local_file(name) if self.is_local else self._fs.create(self._path(name), True)
            try:
                stream.write(bytearray(text, "utf-8"))
                stream.getFD().sync() if self.is_local else stream.hsync()
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise StateError(f"cannot write {self.path}/{name}: {_reason(error)}") from None

    def write_new(self, name: str, text: str, by: str) -> bool:
        """Makes a file, whole from the first; tells whether it did: False if there is one of this name already.

        `by` tells who makes it from others who may be making one of this name at the same time.
        """
        if not self.is_local:
            return self._written_new(name, text)
        aside = f".{name}.{by}"
        self.write(aside, text)
        try:
            # A link comes about at once, with all that is in the file, and never in place of another one.
            self._jvm.java.nio.file.Files.createLink(self._local_path(name).toPath(), self._local_path(aside).toPath())
            return True
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileAlreadyExistsException":
                return False
            # Not every file system has links.
            there = self._local_path(name)
            return bool(not there.exists() and self._local_path(aside).renameTo(there))
        finally:
            self._local_path(aside).delete()

    def _written_new(self, name: str, text: str) -> bool:
        try:
            if self._fs.exists(self._path(name)):
                return False
            stream = self._fs.create(self._path(name), False)
            try:
                stream.write(bytearray(text, "utf-8"))
                stream.hsync()
            finally:
                stream.close()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() == "FileAlreadyExistsException":
                return False
            raise StateError(f"cannot write {self.path}/{name}: {_reason(error)}") from None
        return True

    def files(self) -> list[FileInfo]:
        """The files of the folder, without hidden ones, by name; none if there is no such folder."""
        return sorted(
            (
                FileInfo(str(status.getPath().getName()), int(status.getLen()))
                for status in self._statuses()
                if not status.isDirectory() and not str(status.getPath().getName()).startswith((".", "_"))
            ),
            key=lambda info: info.name,
        )

    def folders(self) -> list[str]:
        """The names of the folders in this one."""
        return sorted(str(status.getPath().getName()) for status in self._statuses() if status.isDirectory())

    def move(self, name: str, folder: Folder, new: str) -> None:
        """Moves a file to another folder of the same file system, in place of what is there."""
        try:
            target = folder._path(new)
            self._fs.delete(target, False)
            moved = self._fs.rename(self._path(name), target)
        except Py4JJavaError as error:
            raise StateError(f"cannot write {folder.path}/{new}: {_reason(error)}") from None
        if not moved:
            raise StateError(f"cannot move {self.path}/{name} to {folder.path}/{new}")

    def delete(self, name: str | None = None) -> None:
        """Deletes a file, or a folder with all that is in it; without a name, this folder itself."""
        try:
            self._fs.delete(self._root if name is None else self._path(name), True)
        except Py4JJavaError as error:
            raise StateError(f"cannot delete {self.path}/{name or ''}: {_reason(error)}") from None

    # On a local disk Hadoop sets the permissions of every file and folder that it makes, by a process for each.

    def _local_path(self, name: str) -> Any:
        return self._jvm.java.io.File(self._fs.makeQualified(self._root).toUri().getPath(), name)

    def _local_file(self, name: str) -> Any:
        path = self._local_path(name)
        path.getParentFile().mkdirs()
        return self._jvm.java.io.FileOutputStream(path)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _statuses(self) -> Iterator[Any]:
        try:
            if self._fs.exists(self._root):
                yield from self._fs.listStatus(self._root)
        except Py4JJavaError as error:
            raise StateError(f"cannot list {self.path}: {_reason(error)}") from None


def _reason(error: Py4JJavaError) -> str:
    """What the file system says, in one line, without the class of an error that it wraps."""
    message = str(error.java_exception.getMessage() or error.java_exception.getClass().getSimpleName())
    return re.sub(r"\s+", " ", re.sub(r"^(\w+\.)+\w+: ", "", message)).strip()
