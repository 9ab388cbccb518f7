#!/bin/sh
# Installs what the tests with the build tag schemathesis make their requests with, into .tools/schemathesis. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../../.."
mkdir -p .tools
[ -x .tools/schemathesis/bin/python ] || python3 -m venv .tools/schemathesis
.tools/schemathesis/bin/python -m pip install --quiet --disable-pip-version-check 'schemathesis==4.32.5'
