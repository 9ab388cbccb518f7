#!/bin/sh
# Compares what functions asked of AWS, as a recorder has noted it in FILE, with what their roles
# allow. Needs Python 3 and Node.
# Usage: check.sh FILE
set -eu
calls=$(realpath "$1")
cd "$(dirname "$0")/../../../.."
sh infra/sam/setup.sh
sh internal/test/emulator/iam/setup.sh
policies=$(mktemp)
trap 'rm -f "$policies"' EXIT
# What an operator makes is where slipway-local has it (github.go).
secret=arn:aws:secretsmanager:us-east-1:000000000000:secret:slipway-github
.tools/sam/bin/python infra/sam/policies.py template.yaml "GitHubApp=$secret-app" "GitHubWebhook=$secret-webhook" >"$policies"
node --test --test-reporter dot internal/test/emulator/iam/
node internal/test/emulator/iam/check.mjs "$policies" "$calls"
