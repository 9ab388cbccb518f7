// Package crash tells a process whether the process before it ended by a fault of its own: an
// error that the Go runtime does not let a program survive, or a panic that nothing caught. A
// process that was killed, or that lost its machine, leaves no trace of this kind. A signal with
// which an operator asks for the stacks of a process (SIGQUIT) is no fault of the process.
package crash

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime/debug"
)

// Kept is what is added to the name of a report to name the report of the last crash.
const Kept = ".last"

// sent matches the beginning of the report of a signal that another process sent. Its code is
// SI_USER, which is 0.
var sent = regexp.MustCompile(`^SIG\w+: [^\n]*\n[^\n]* sigcode=0\b`)

// Watch has the runtime write the report of this process's crash into the file. It reports whether
// the previous process left a report of a crash there, and keeps each report beside the file. The
// file is readable for its owner only, because a report may hold data of the process.
func Watch(file string) (crashed bool, err error) {
	switch begin, err := beginning(file); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, fmt.Errorf("look for a crash: %w", err)
	case len(begin) > 0:
		if err := os.Rename(file, file+Kept); err != nil {
			return true, fmt.Errorf("keep the report of a crash: %w", err)
		}
		crashed = !sent.Match(begin)
	}
	report, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return crashed, fmt.Errorf("watch for a crash: %w", err)
	}
	// The runtime writes to a duplicate of the file's descriptor.
	return crashed, errors.Join(debug.SetCrashOutput(report, debug.CrashOptions{}), report.Close())
}

// beginning returns the first lines of a file, which may be large.
func beginning(file string) ([]byte, error) {
	report, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = report.Close() }()
	return io.ReadAll(io.LimitReader(report, 1<<10))
}
