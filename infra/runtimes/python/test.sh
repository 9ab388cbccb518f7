#!/bin/sh
# Tests the runtime with the current and the previous minor version of the framework, and with older
# ones what holds with every release, each in an environment of its own in .tools/runtime-python.
# Needs Python 3.11 or newer. Arguments go to pytest; OVERHEAD=1 measures instead.
set -eu
cd "$(dirname "$0")/../../.."
uv=$(sh infra/runtimes/uv.sh)
common='orjson==3.13.0 ormsgpack==1.13.1 httptools==0.9.0 pytest==9.2.0 starlette==1.10.0'
newest="$common uvicorn==0.54.0 langgraph-checkpoint==4.3.2 langgraph-checkpoint-conformance==0.0.2 langchain-core==1.7.2 fastapi==0.165.0"
for version in current previous 0.6 0.4 0.3; do
	tests=tests/test_releases.py
	case $version in
	current) tests='' pins="$newest langgraph==1.2.22 langgraph-prebuilt==1.1.2 langgraph-sdk==0.4.14" ;;
	previous) tests='' pins="$newest langgraph==1.1.10 langgraph-prebuilt==1.0.13 langgraph-sdk==0.3.15" ;;
	0.6) pins="$common uvicorn==0.30.6 langgraph==0.6.11 langgraph-checkpoint==3.0.1 langgraph-sdk==0.2.15 langchain-core==1.7.2" ;;
	0.4) pins="$common uvicorn==0.30.6 langgraph==0.4.10 langgraph-checkpoint==2.1.2 langgraph-sdk==0.1.74 langchain-core==0.3.86" ;;
	0.3) pins="$common uvicorn==0.22.0 langgraph==0.3.18 langgraph-checkpoint==2.0.26 langgraph-sdk==0.1.42 langchain-core==0.3.86" ;;
	esac
	[ -n "$tests" ] && [ -n "${OVERHEAD:-}" ] && continue
	environment=.tools/runtime-python/$version
	[ -x "$environment/bin/python" ] || "$uv" venv --quiet --python python3 "$environment"
	# shellcheck disable=SC2086
	"$uv" pip install --quiet --compile-bytecode --python "$environment" $pins
	"$uv" pip install --quiet --compile-bytecode --python "$environment" --reinstall-package slipway-runtime --no-deps ./infra/runtimes/python
	"$uv" pip check --quiet --python "$environment"
	if [ -n "${OVERHEAD:-}" ]; then
		PYTHONDONTWRITEBYTECODE=1 "$environment/bin/python" infra/runtimes/python/tests/overhead.py
	else
		# shellcheck disable=SC2086
		(cd infra/runtimes/python && "../../../$environment/bin/python" -m pytest --quiet $tests "$@")
	fi
done
