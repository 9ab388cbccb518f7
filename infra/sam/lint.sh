#!/bin/sh
# Checks template.yaml, network.yaml and deployer.yaml with cfn-lint, for each region of
# samconfig.toml, and so what the SAM transform makes of the first. `sam validate --lint` would be
# the same cfn-lint for one region. The tools are set up under .tools once. Needs Python 3 with
# venv; asks no account.
set -eu
cd "$(dirname "$0")/../.."

tools=.tools/sam
sh infra/sam/setup.sh

regions=$(sed -n 's/^region *= *"\([a-z0-9-]*\)".*/\1/p' samconfig.toml | sort -u)

# Without credentials, and with an empty home for them, the tools ask nobody.
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE
export AWS_DEFAULT_REGION=us-east-1 AWS_EC2_METADATA_DISABLED=true

# shellcheck disable=SC2086 # a list of regions
"$tools/bin/cfn-lint" --regions $regions -- template.yaml infra/network.yaml infra/deployer.yaml
# Checks the resources that SAM makes only if a parameter says so. SAM leaves a mapping, a text
# without variables, and a DependsOn on resources that have a condition, which is allowed; lists of
# subnets and groups are empty by default (W1030); and one of two conditions always holds (W1028).
translated=$(mktemp)
trap 'rm -f "$translated"' EXIT
"$tools/bin/python" infra/sam/transform.py template.yaml TrafficShift=Canary10Percent15Minutes RunnerCompute=managed >"$translated"
# shellcheck disable=SC2086 # a list of regions
"$tools/bin/cfn-lint" --regions $regions --ignore-checks E3005 W1020 W1028 W1030 W7001 -- "$translated"
