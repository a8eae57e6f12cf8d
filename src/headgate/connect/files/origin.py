"""The origin of a row: the file that it lies in, and the part of that file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: A row's file, as Spark names it, and where the part of it begins that Spark reads in one go.
FILE, PART = "_hg_file", "_hg_part"
#: The same for files that Spark found by itself: it takes them in the order of their age.
PLACE = ("_hg_age", FILE, PART)


def with_place(df: DataFrame) -> DataFrame:
    """The rows of files with the columns of PLACE."""
    about = df.metadataColumn("_metadata")
    age = F.unix_micros(about["file_modification_time"])
    return df.withColumns(dict(zip(PLACE, (age, about["file_path"], about["file_block_start"]), strict=True)))


def has_place(df: DataFrame) -> bool:
    """Whether Spark knows which file each row came from."""
    try:
        return with_place(df) is not df
    except (PySparkException, Py4JJavaError):
        return False
