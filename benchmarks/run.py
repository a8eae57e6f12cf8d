"""Runs benchmarks by name, all of them by default: python -m benchmarks.run [name ...] [--rows N]."""

from __future__ import annotations

import argparse

from rich.console import Console

import headgate as hg
from benchmarks import (
    changes,
    drop_nothing,
    drops,
    forms,
    join_overload,
    joins,
    order,
    overlap,
    overload,
    sharing,
    skew,
    streams,
    windows,
)

BENCHMARKS = {
    "windows": windows.run,
    "overlap": overlap.run,
    "streams": streams.run,
    "sharing": sharing.run,
    "skew": skew.run,
    "forms": forms.run,
    "joins": joins.run,
    "order": order.run,
    "changes": changes.run,
    "overload": overload.run,
    "nothing": drop_nothing.run,
    "join_overload": join_overload.run,
}
#: Those that simulate, and need no Spark.
SIMULATIONS = {"drops": drops.run}


def main() -> None:
    """Prints a table for each benchmark. Times are of this machine at this moment; compare the ratios."""
    names = [*BENCHMARKS, *SIMULATIONS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"one of {', '.join(names)}")
    parser.add_argument("--rows", type=int, default=20_000_000, help="packets to generate (default 20 million)")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(names)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)}: choose from {', '.join(names)}")
    console = Console()
    for name in asked.names or names:
        if name in SIMULATIONS:
            SIMULATIONS[name](console)
        else:
            BENCHMARKS[name](hg.session(), console, asked.rows)


if __name__ == "__main__":
    main()
