#!/bin/sh
# Installs the public service's own command, with which the tests deploy, into .tools/cli. Needs
# Python 3.
set -eu
cd "$(dirname "$0")/../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/cli/installed wanted=$(cat internal/test/e2e/testdata/cli/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/cli/bin/python ] || "$uv" venv --quiet --python python3 .tools/cli
"$uv" pip install --quiet --compile-bytecode --python .tools/cli 'langgraph-cli==0.4.40'
echo "$wanted" >$stamp
