#!/bin/sh
# Prints the path of uv, with which the tests install Python packages: the machine's, or one in the
# version of the builds, which it installs into .tools. Needs Python 3.
set -eu
cd "$(dirname "$0")/../.."
if command -v uv; then exit; fi
version=$(sed -n 's/^const UVVersion = "\(.*\)"$/\1/p' internal/seam/build/framework/python.go)
uv=$PWD/.tools/uv-$version/uv
if [ ! -x "$uv" ]; then
	mkdir -p "$(dirname "$uv")"
	temporary=$(mktemp -d)
	trap 'rm -rf "$temporary"' EXIT
	python3 -m venv "$temporary"
	"$temporary/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$version" >&2
	# Renamed within a directory, so that another script sees all of it or nothing.
	cp "$temporary/bin/uv" "$uv.$$"
	mv "$uv.$$" "$uv"
fi
echo "$uv"
