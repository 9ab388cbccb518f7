#!/bin/sh
# Installs into .tools/browser what the tests with the build tag browser use: playwright-core, which
# brings no browser of its own, axe-core, which finds what people with disabilities cannot use,
# pngjs and gifenc, which make the animations of the README, what the example page of the newest
# hooks is built with, and the application Agent Chat, built.
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
# The package has the sources of the application. They name ranges of packages; `--before` takes the
# packages of one day.
rm -rf .tools/browser/agent-chat && mkdir .tools/browser/agent-chat
npm install --prefix .tools/browser/agent-chat --silent --no-audit --no-fund --save-exact 'create-agent-chat-app@0.1.6'
cp -r .tools/browser/agent-chat/node_modules/create-agent-chat-app/templates/vite .tools/browser/agent-chat/sources
(
	cd .tools/browser/agent-chat/sources
	npm install --silent --no-audit --no-fund --legacy-peer-deps --before=2026-11-01
	npm run --silent build:internal -- --outDir ../pages --logLevel error
)
rm -rf .tools/browser/agent-chat/sources .tools/browser/agent-chat/node_modules
echo "$wanted" >$stamp
