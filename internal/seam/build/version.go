package build

import (
	"runtime/debug"
	"sync"
)

// stamped is the version that the linker has put here: -X
// github.com/slipway-run/slipway/internal/seam/build.stamped=v1.2.3, as `make build` does.
var stamped string

// unknown is the version of a program that was neither stamped nor built from a repository or a
// module.
const unknown = "dev"

// Version returns the version of this program, which the program shows everywhere. It is the
// version that the program was stamped with or, without a stamp, the version that the
// toolchain has noted: a tag, or a commit and its time.
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
