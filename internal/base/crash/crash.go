// Package crash tells a process whether the process before it ended by a fault of its own: an
// error that the Go runtime does not let a program survive, or a panic that nothing caught. A
// process that was killed, or that lost its machine, leaves no trace of this kind.
package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
)

// Kept is what is added to the name of a report to name the report of the last crash.
const Kept = ".last"

// Watch has the runtime write the report of this process's crash into the file. It reports whether
// the previous process left a report there, and keeps this report beside the file. The file is
// readable for its owner only, because a report may hold data of the process.
func Watch(file string) (crashed bool, err error) {
	switch info, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, fmt.Errorf("look for a crash: %w", err)
	case info.Size() > 0:
		if err := os.Rename(file, file+Kept); err != nil {
			return true, fmt.Errorf("keep the report of a crash: %w", err)
		}
		crashed = true
	}
	report, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return crashed, fmt.Errorf("watch for a crash: %w", err)
	}
	// The runtime writes to a duplicate of the file's descriptor.
	return crashed, errors.Join(debug.SetCrashOutput(report, debug.CrashOptions{}), report.Close())
}
