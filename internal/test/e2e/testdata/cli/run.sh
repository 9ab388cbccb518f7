#!/bin/sh
# Runs the public service's own command, which setup.sh installs, in the present directory. Without
# this variable, the command would report to its makers.
export LANGGRAPH_CLI_NO_ANALYTICS=1
exec "$(dirname "$0")/../../../../../.tools/cli/bin/langgraph" "$@"
