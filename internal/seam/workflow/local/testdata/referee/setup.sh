#!/bin/sh
# Installs the interpreter that the tests with the build tag referee compare this engine with, into .tools/referee. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../../.."
[ -x .tools/referee/bin/python ] || python3 -m venv .tools/referee
.tools/referee/bin/python -m pip install --quiet --disable-pip-version-check -r internal/seam/workflow/local/testdata/referee/requirements.txt
