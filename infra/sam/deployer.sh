#!/bin/sh
# Compares the role that deploys a stack (infra/deployer.yaml) with what CloudFormation asks for the stack's resources. Needs Python 3 and Node.
set -eu
cd "$(dirname "$0")/../.."
sh infra/sam/setup.sh
sh internal/test/emulator/iam/setup.sh
asked=$(mktemp)
trap 'rm -f "$asked"' EXIT
.tools/sam/bin/python infra/sam/deployer.py template.yaml infra/deployer.yaml >"$asked"
node internal/test/emulator/iam/deployer.mjs "$asked"
