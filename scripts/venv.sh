#!/bin/sh
# Makes or refreshes a virtual environment for the Makefile, and leaves a good one alone.
#
#   scripts/venv.sh DIRECTORY EXTRAS
#
# EXTRAS is "" for the core alone, or "[dev]". An environment is made once. What it holds is installed again when
# pyproject.toml or constraints.txt say something new, or when the tree was moved. PYTHON=... names the interpreter.
set -eu
cd "$(dirname "$0")/.."
venv=$1
extras=$2
stamp=$venv/installed-for

wanted="$extras $PWD $(cat pyproject.toml constraints.txt scripts/venv.sh | cksum)"
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

usable='import sys
sys.exit(sys.version_info < (3, 11))'
complete='import ensurepip, venv'

# The newest that the tests run on goes first; a name may exist and still not run (pyenv's shims).
found=
for candidate in ${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "$usable" >/dev/null 2>&1; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "chatfold needs Python 3.11 or newer, and none of these is one: ${PYTHON:-python3.13 python3.12 python3.11 python3 python}." >&2
    echo "Install one, or name yours: make PYTHON=/path/to/python3 ..." >&2
    exit 1
fi
if ! "$found" -c "$complete" >/dev/null 2>&1; then
    echo "$found cannot make virtual environments: its modules venv and ensurepip are missing." >&2
    echo "On Debian and Ubuntu they are in a package of their own: python3-venv." >&2
    exit 1
fi

# One that stopped half-way, or whose tree was moved, is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 || ! grep -qsF " $PWD " "$stamp"; then
    echo "== $venv: making it with $("$found" --version 2>&1)"
    rm -rf "$venv"
    "$found" -m venv "$venv"
fi
rm -f "$stamp"

echo "== $venv: installing chatfold$extras (the first time takes a minute or two)"
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input "$@"; }
# The build's own tools come under the constraints too, so pip builds here and not in a place of its own.
pip install -q -c constraints.txt hatchling editables
# sh has no pipefail: the stamp, written only where pip ended well, tells whether it did.
{
    pip install --progress-bar off --no-build-isolation -c constraints.txt -e ".$extras" &&
        printf '%s' "$wanted" >"$stamp"
} | sed -n -e 's/^Collecting \([^ ]*\).*/   \1/p' -e '/^Installing collected/p' -e 's/^Successfully installed.*/   done/p'
[ -f "$stamp" ]
