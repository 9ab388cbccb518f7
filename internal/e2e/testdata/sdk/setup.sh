#!/bin/sh
# Installs the client SDKs that the tests with the build tag sdk drive the server with, into .tools/sdk. Needs Python 3 and Node.
set -eu
cd "$(dirname "$0")/../../../.."
mkdir -p .tools/sdk/js
[ -x .tools/sdk/python/bin/python ] || python3 -m venv .tools/sdk/python
.tools/sdk/python/bin/python -m pip install --quiet --disable-pip-version-check 'langgraph-sdk==0.4.14'
npm install --prefix .tools/sdk/js --silent --no-audit --no-fund --save-exact '@langchain/langgraph-sdk@2.0.0' '@langchain/core@1.2.13'
