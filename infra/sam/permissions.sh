#!/bin/sh
# Asks a simulator of IAM whether the role that deploys a stack allows what CloudFormation asks for
# the stack's resources, and whether the roles of functions allow what no end-to-end test asks for.
# Needs Python 3 and Node.
set -eu
cd "$(dirname "$0")/../.."
sh infra/sam/setup.sh
sh internal/test/emulator/iam/setup.sh
asked=$(mktemp)
trap 'rm -f "$asked"' EXIT
.tools/sam/bin/python infra/sam/deployer.py template.yaml infra/deployer.yaml >"$asked"
node internal/test/emulator/iam/asked.mjs "$asked"
.tools/sam/bin/python infra/sam/elsewhere.py template.yaml >"$asked"
node internal/test/emulator/iam/asked.mjs "$asked"
