#!/bin/sh
# Installs the framework's own development servers, with which the tests with the build tag
# devserver compare, into .tools/devserver. Needs Python 3 and Node.
set -eu
cd "$(dirname "$0")/../../../../.."
tools=.tools/devserver
mkdir -p "$tools/node"
uv=$(sh infra/runtimes/uv.sh)
[ -x "$tools/python/bin/python" ] || "$uv" venv --quiet --python python3 "$tools/python"
"$uv" pip install --quiet --compile-bytecode --python "$tools/python" \
	'langgraph-cli[inmem]==0.4.40' 'langgraph-api==0.16.7' 'langgraph-runtime-inmem==0.36.7' 'langgraph==1.2.22' 'langchain-core==1.7.2'
# The release of the server with the highest number is older code. The rest is what the examples
# have.
npm install --prefix "$tools/node" --silent --no-audit --no-fund --save-exact \
	'@langchain/langgraph-cli@1.5.1' '@langchain/langgraph@1.7.3' '@langchain/core@1.4.0' 'zod@4.6.7'
