"""The inputs of the commands: texts of queries, and streams by name."""

from __future__ import annotations

import sys
from pathlib import Path

from headgate.errors import SourceError


def read_text(path: str) -> str:
    """The text of a file, or of standard input for `-`.

    >>> read_text("nowhere.sql")
    Traceback (most recent call last):
    headgate.errors.SourceError: cannot read nowhere.sql: No such file or directory
    """
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SourceError(f"cannot read {path}: it is not text in UTF-8") from None


def query_text(given: str) -> str:
    """The query that an argument stands for: the argument itself, the file named after an @, or stdin for `-`.

    >>> query_text("SELECT 1")
    'SELECT 1'
    """
    if given == "-":
        return read_text(given)
    return read_text(given.removeprefix("@")) if given.startswith("@") else given


def paths_by_name(given: list[str], option: str = "--stream") -> dict[str, str]:
    """The path of each stream or table, from options such as NAME=PATH.

    >>> paths_by_name(["Main=a=b.csv"])
    {'Main': 'a=b.csv'}
    >>> paths_by_name(["main.csv"])
    Traceback (most recent call last):
    headgate.errors.SourceError: --stream main.csv: write it as NAME=PATH, such as Main=main.csv
    """
    paths: dict[str, str] = {}
    for text in given:
        name, equals, path = (part.strip() for part in text.partition("="))
        if not (name and equals and path):
            raise SourceError(f"{option} {text}: write it as NAME=PATH, such as Main=main.csv")
        if name.lower() in (known.lower() for known in paths):
            raise SourceError(f"{option} {text}: there is a {option.strip('-')} {name} already")
        paths[name] = path
    return paths
