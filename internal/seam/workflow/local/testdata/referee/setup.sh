#!/bin/sh
# Installs the interpreter that the tests with the build tag referee compare this engine with, into
# .tools/referee. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/referee/installed wanted=$(cat internal/seam/workflow/local/testdata/referee/setup.sh internal/seam/workflow/local/testdata/referee/requirements.txt | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/referee/bin/python ] || "$uv" venv --quiet --python python3 .tools/referee
"$uv" pip install --quiet --compile-bytecode --python .tools/referee -r internal/seam/workflow/local/testdata/referee/requirements.txt
echo "$wanted" >$stamp
