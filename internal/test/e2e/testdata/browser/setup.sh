#!/bin/sh
# Installs into .tools/browser what the tests with the build tag browser use: playwright-core, which brings no browser of its own,
# axe-core, which finds what people with disabilities cannot use, pngjs and gifenc, which make the animations of the README, and
# what the example page of the newest hooks is built with.
# Needs Node, and Debian's Chromium, which root gets here; others say in CHROMIUM where theirs is.
set -eu
cd "$(dirname "$0")/../../../../.."
# Nothing is done twice: the stamp is the sum of what says what to install.
stamp=.tools/browser/installed wanted=$(cat internal/test/e2e/testdata/browser/setup.sh infra/examples/chat-react/package-lock.json | cksum)
command -v "${CHROMIUM:-chromium}" >/dev/null && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && exit 0
if ! command -v "${CHROMIUM:-chromium}" >/dev/null; then
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends chromium
fi
mkdir -p .tools/browser
npm install --prefix .tools/browser --silent --no-audit --no-fund --save-exact 'playwright-core@1.64.1' 'axe-core@4.11.0' 'pngjs@7.0.0' 'gifenc@1.0.3'
mkdir -p .tools/browser/chat-react
cp infra/examples/chat-react/package.json infra/examples/chat-react/package-lock.json .tools/browser/chat-react
npm ci --prefix .tools/browser/chat-react --silent --no-audit --no-fund
echo "$wanted" >$stamp
