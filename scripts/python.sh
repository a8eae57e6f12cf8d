#!/bin/sh
# Prints a Python interpreter that can make the project's environment: 3.11 or newer, with venv. PYTHON= overrides.
set -eu

for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3 python}; do
    # A command of that name may be a launcher without a version behind it: only running it tells.
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$candidate"
        exit 0
    fi
done
echo 'headgate: needs Python 3.11 or newer with its venv module (Debian and Ubuntu: sudo apt-get install -y python3-venv)' >&2
exit 1
