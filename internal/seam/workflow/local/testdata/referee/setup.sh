#!/bin/sh
# Installs the interpreter that the tests with the build tag referee compare this engine with, into
# .tools/referee. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/referee/installed wanted=$(cat internal/seam/workflow/local/testdata/referee/setup.sh internal/seam/workflow/local/testdata/referee/requirements.txt | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
[ -x .tools/referee/bin/python ] || python3 -m venv .tools/referee
.tools/referee/bin/python -m pip install --quiet --disable-pip-version-check -r internal/seam/workflow/local/testdata/referee/requirements.txt
echo "$wanted" >$stamp
