package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestAProfileIsWritten is not parallel: a process makes one profile at a time.
func TestAProfileIsWritten(t *testing.T) { //nolint:paralleltest // as said
	failure := errors.New("it ended so")
	file := filepath.Join(t.TempDir(), "cpu.pprof")
	if err := profile(file, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want how the work ended", err)
	}
	if text, err := os.ReadFile(file); err != nil || len(text) < 2 || text[0] != 0x1f || text[1] != 0x8b {
		t.Errorf("it begins with %.2x (%v), want gzip, as profiles are", text, err)
	}
	worked := false
	if err := profile(filepath.Join(file, "nowhere"), func() error { worked = true; return nil }); err == nil || worked {
		t.Errorf("a profile that cannot be written: the work was done: %t (%v)", worked, err)
	}
}
