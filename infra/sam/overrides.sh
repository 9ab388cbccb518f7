#!/bin/sh
# Prints the template's parameters that samconfig.toml has for an environment: overrides.sh CONFIG. Overrides on SAM's command line replace those of
# the file, so that both are given together.
set -eu
cd "$(dirname "$0")/../.."
exec python3 - "$1" <<'PYTHON'
import sys, tomllib

with open("samconfig.toml", "rb") as file:
    environments = tomllib.load(file)
if sys.argv[1] not in environments:
    sys.exit(f"samconfig.toml has no environment {sys.argv[1]!r}")
print(environments[sys.argv[1]]["deploy"]["parameters"]["parameter_overrides"])
PYTHON
