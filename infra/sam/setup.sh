#!/bin/sh
# Installs AWS's tools for templates and functions into .tools/sam, once for each version. Needs
# Python 3 with venv.
set -eu
cd "$(dirname "$0")/../.."
tools=.tools/sam wanted='aws-sam-cli==1.170.0 aws-sam-translator==1.115.0 cfn-lint==1.58.0'
mkdir -p .tools
exec 9>"$tools.lock"
flock 9 # programs that start together install once
[ "$(cat "$tools/installed" 2>/dev/null)" = "$wanted" ] && exit 0
uv=$(sh infra/runtimes/uv.sh)
[ -x "$tools/bin/python" ] || "$uv" venv --quiet --python python3 "$tools"
# shellcheck disable=SC2086 # a list of requirements
"$uv" pip install --quiet --compile-bytecode --python "$tools" $wanted
echo "$wanted" >"$tools/installed"
