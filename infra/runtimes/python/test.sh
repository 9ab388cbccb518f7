#!/bin/sh
# Tests the runtime with the current and the previous minor version of the framework, each in an environment of its own in .tools/runtime-python.
# Needs Python 3.11 or newer. Arguments go to pytest; OVERHEAD=1 measures instead.
set -eu
cd "$(dirname "$0")/../../.."
uv=$(sh infra/runtimes/uv.sh)
common='langgraph-checkpoint==4.3.2 langgraph-checkpoint-conformance==0.0.2 langchain-core==1.7.2 uvicorn==0.54.0 httptools==0.9.0 orjson==3.13.0 ormsgpack==1.13.1 pytest==9.2.0'
for version in current previous; do
	case $version in
	current) pins='langgraph==1.2.22 langgraph-prebuilt==1.1.2 langgraph-sdk==0.4.14' ;;
	previous) pins='langgraph==1.1.10 langgraph-prebuilt==1.0.13 langgraph-sdk==0.3.15' ;;
	esac
	environment=.tools/runtime-python/$version
	[ -x "$environment/bin/python" ] || "$uv" venv --quiet --python python3 "$environment"
	# shellcheck disable=SC2086
	"$uv" pip install --quiet --compile-bytecode --python "$environment" $common $pins
	"$uv" pip install --quiet --compile-bytecode --python "$environment" --reinstall-package slipway-runtime --no-deps ./infra/runtimes/python
	"$uv" pip check --quiet --python "$environment"
	if [ -n "${OVERHEAD:-}" ]; then
		PYTHONDONTWRITEBYTECODE=1 "$environment/bin/python" infra/runtimes/python/tests/overhead.py
	else
		(cd infra/runtimes/python && "../../../$environment/bin/python" -m pytest --quiet "$@")
	fi
done
