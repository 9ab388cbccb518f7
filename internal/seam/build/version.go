package build

import (
	"runtime/debug"
	"sync"
)

// stamped is what the linker has put here: -X
// github.com/slipway-run/slipway/internal/seam/build.stamped=v1.2.3, as `make build` does.
var stamped string

// unknown is the version of a program that was neither stamped nor built from a repository or a
// module.
const unknown = "dev"

// Version is the version of this program, which it shows everywhere: the one that it was stamped
// with, or else what the toolchain has noted, which is a tag, or a commit and its time.
var Version = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(stamped, info)
})

func versionOf(stamped string, info *debug.BuildInfo) string {
	switch {
	case stamped != "":
		return stamped
	case info == nil || info.Main.Version == "" || info.Main.Version == "(devel)":
		return unknown
	}
	return info.Main.Version
}
