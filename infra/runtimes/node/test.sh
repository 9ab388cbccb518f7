#!/bin/sh
# Tests the Node runtime with the framework's newest release, with two older ones and with some of
# its early releases, which it installs into .tools/runtime-node. Needs Node 20 or newer.
# Arguments go to `node --test`, as in: sh infra/runtimes/node/test.sh --test-name-pattern fork
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tools=$(cd "$here/../../.." && pwd)/.tools/runtime-node

# A copy is tested, as a build makes one: its packages are not in the repository.
install() { # <directory> <npm arguments>: once for each state of its lock file
  dir=$1
  shift
  if [ ! -d "$dir/node_modules" ] || ! cmp -s "$dir/package-lock.json" "$dir/node_modules/.installed"; then
    (cd "$dir" && npm ci --no-audit --no-fund --loglevel=error "$@" && cp package-lock.json node_modules/.installed)
  fi
}

mkdir -p "$tools/runtime"
rm -rf "$tools/runtime/src"
mkdir -p "$tools/runtime/ui"
cp "$here"/ui/* "$tools/runtime/ui/"
cp -R "$here/main.mjs" "$here/src" "$here/package.json" "$here/package-lock.json" "$tools/runtime/"
install "$tools/runtime" --omit=dev
install "$tools/runtime/ui" --omit=dev
for project in current previous older; do
  mkdir -p "$tools/$project"
  cp "$here/test/projects/$project/package.json" "$here/test/projects/$project/package-lock.json" "$tools/$project/"
  install "$tools/$project"
  rm -rf "$tools/$project/graphs" "$tools/$project/examples"
  cp -R "$here/test/graphs" "$tools/$project/graphs"
  mkdir -p "$tools/$project/examples"
  for example in "$here"/../../examples/node-*; do
    name=$(basename "$example")
    mkdir -p "$tools/$project/examples/$name"
    cp "$example"/*.json "$example"/*.ts "$tools/$project/examples/$name/"
  done
done

mkdir -p "$tools/early"
cp -R "$here/test/projects/early/." "$tools/early/"
install "$tools/early" --install-strategy=nested

cd "$here"
export RUNTIME_DIR="$tools/runtime"
for project in current previous older; do
  echo "# $project: @langchain/langgraph $(node -p "require('$tools/$project/node_modules/@langchain/langgraph/package.json').version")"
  PROJECT_DIR="$tools/$project" node --test --test-concurrency=2 "$@" test/*.test.mjs
done
for project in "$tools"/early/0.*; do
  echo "# early: @langchain/langgraph $(basename "$project")"
  rm -rf "$project/graphs"
  cp -R "$here/test/graphs-early" "$project/graphs"
  cp "$here/test/graphs/refusing.mjs" "$project/graphs/"
  PROJECT_DIR="$project" node --test "$@" test/early.spec.mjs test/refused.test.mjs
done
cp "$here/test/conformance.spec.mjs" "$tools/current/"
cd "$tools/current"
# README.md says why one is left out.
exec npx --no-install vitest run --globals --root . -t '^(?!.*should only store channel_values that have changed)' conformance.spec.mjs
