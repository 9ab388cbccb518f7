#!/bin/sh
# Installs the public service's own command, with which the tests deploy, into .tools/cli. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/cli/installed wanted=$(cat internal/test/e2e/testdata/cli/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/cli/bin/python ] || "$uv" venv --quiet --python python3 .tools/cli
"$uv" pip install --quiet --compile-bytecode --python .tools/cli 'langgraph-cli==0.4.40'
# The neutral name of the one member that is not the server's to rename. The package's file is replaced, as it may share its contents with uv's cache.
backend=$(.tools/cli/bin/python -c 'import langgraph_cli.host_backend as module; print(module.__file__)')
sed -i.orig 's/"langgraph_config_path"/"framework_config_path"/' "$backend"
rm -f "$backend.orig"
grep -q '"framework_config_path"' "$backend"
echo "$wanted" >$stamp
