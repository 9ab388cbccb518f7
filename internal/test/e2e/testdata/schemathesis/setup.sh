#!/bin/sh
# Installs what the tests with the build tag schemathesis make their requests with, into .tools/schemathesis. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../.."
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/schemathesis/bin/python ] || "$uv" venv --quiet --python python3 .tools/schemathesis
"$uv" pip install --quiet --compile-bytecode --python .tools/schemathesis 'schemathesis==4.32.5'
