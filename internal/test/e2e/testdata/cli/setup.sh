#!/bin/sh
# Installs the public service's own command, with which the tests deploy, into .tools/cli. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../../.."
uv=$(sh infra/runtimes/uv.sh)
[ -x .tools/cli/bin/python ] || "$uv" venv --quiet --python python3 .tools/cli
"$uv" pip install --quiet --compile-bytecode --python .tools/cli 'langgraph-cli==0.4.40'
# The neutral name of the one member that is not the server's to rename. The package's file is replaced, as it may share its contents with uv's cache.
backend=$(.tools/cli/bin/python -c 'import langgraph_cli.host_backend as module; print(module.__file__)')
sed -i.orig 's/"langgraph_config_path"/"framework_config_path"/' "$backend"
rm -f "$backend.orig"
grep -q '"framework_config_path"' "$backend"
