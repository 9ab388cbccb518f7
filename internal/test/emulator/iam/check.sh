#!/bin/sh
# Compares the calls of functions to AWS, which a recorder has noted in FILE, with the permissions
# of their roles. Needs Python 3 and Node.
# Usage: check.sh FILE
set -eu
calls=$(realpath "$1")
cd "$(dirname "$0")/../../../.."
sh infra/sam/setup.sh
sh internal/test/emulator/iam/setup.sh
policies=$(mktemp)
trap 'rm -f "$policies"' EXIT
# The resources that an operator makes are where slipway-local has them (github.go).
secret=arn:aws:secretsmanager:us-east-1:000000000000:secret:slipway-github
.tools/sam/bin/python infra/sam/policies.py template.yaml "GitHubApp=$secret-app" "GitHubWebhook=$secret-webhook" >"$policies"
node --test --test-reporter dot internal/test/emulator/iam/
node internal/test/emulator/iam/check.mjs "$policies" "$calls"
