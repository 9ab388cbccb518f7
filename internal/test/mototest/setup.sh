#!/bin/sh
# Installs moto, which plays the services of AWS for the tests with the build tag moto, into .tools/moto. Needs Python 3.
set -eu
cd "$(dirname "$0")/../../.."
mkdir -p .tools
[ -x .tools/moto/bin/python ] || python3 -m venv .tools/moto
.tools/moto/bin/python -m pip install --quiet --disable-pip-version-check 'moto[server]==5.2.1'
