#!/bin/sh
# Installs LocalStack, on which the stack is rehearsed, into .tools/localstack. Needs Python 3.
set -eu
cd "$(dirname "$0")/../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/localstack/installed wanted=$(cat infra/rehearsal/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
mkdir -p .tools
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/localstack/bin/python ] || "$uv" venv --quiet --python python3 .tools/localstack
# This is the last release line that starts without a licence. It names its dependencies with open
# ranges, and later ones break it.
"$uv" pip install --quiet --compile-bytecode --python .tools/localstack --exclude-newer 2025-10-20 'localstack-core[runtime]==4.9.2'
npm install --prefix .tools/localstack/kinesis --silent --no-audit --no-fund --save-exact kinesis-local@0.4.13
echo "$wanted" >$stamp
