// Package runtimes holds the programs that host graphs written in Python and JavaScript, as files
// for a build.
package runtimes

import "embed"

// Files are the runtimes by directory: python, node.
//
//go:embed python/pyproject.toml python/slipway_runtime/*.py
//go:embed node/package.json node/package-lock.json node/main.mjs node/src/*.mjs
//go:embed node/ui/package.json node/ui/package-lock.json node/ui/bundle.mjs
var Files embed.FS
