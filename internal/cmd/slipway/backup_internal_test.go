package main

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestWhatABackupSkips is told in a few short lines, whatever agents do.
func TestWhatABackupSkips(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	var none, many skipped
	if err := none.report(&said); err != nil || said.Len() > 0 {
		t.Errorf("nothing is skipped: said %q, %v", &said, err)
	}
	for i := range 1000 {
		name := fmt.Sprintf("builds/%d\x1b[2J%s", i, strings.Repeat("deep/", 1000))
		many.add(name, &fs.PathError{Op: "lstat", Path: name, Err: syscall.ENAMETOOLONG})
	}
	check.Must(t, many.report(&said))
	got := said.String()
	if !strings.HasPrefix(got, "1000 files or directories are not in the backup") || !strings.Contains(got, `"builds/9\x1b[2Jdeep/`) ||
		!strings.Contains(got, ": file name too long\n") || strings.Count(got, "\n") != 11 || len(got) > 4000 {
		t.Errorf("said %q", got)
	}
}
