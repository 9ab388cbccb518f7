#!/bin/sh
# Installs the program that makes the requests of the tests with the build tag schemathesis, into
# .tools/schemathesis. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/schemathesis/installed wanted=$(cat internal/test/e2e/testdata/schemathesis/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/schemathesis/bin/python ] || "$uv" venv --quiet --python python3 .tools/schemathesis
"$uv" pip install --quiet --compile-bytecode --python .tools/schemathesis 'schemathesis==4.32.5'
echo "$wanted" >$stamp
