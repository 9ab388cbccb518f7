#!/bin/sh
# Runs the public service's own command, which setup.sh installs, in the present directory. It would
# tell its makers.
export LANGGRAPH_CLI_NO_ANALYTICS=1
exec "$(dirname "$0")/../../../../../.tools/cli/bin/langgraph" "$@"
