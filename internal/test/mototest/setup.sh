#!/bin/sh
# Installs moto, which plays the services of AWS for the tests with the build tag moto, into
# .tools/moto. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/moto/installed wanted=$(cat internal/test/mototest/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
mkdir -p .tools
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/moto/bin/python ] || "$uv" venv --quiet --python python3 .tools/moto
"$uv" pip install --quiet --compile-bytecode --python .tools/moto 'moto[server]==5.2.1'
echo "$wanted" >$stamp
