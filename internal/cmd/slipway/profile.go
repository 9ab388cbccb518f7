package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profile runs work and writes a processor profile to the file, in the form of `go tool
// pprof`; without a file it only runs work.
func profile(file string, work func() error) error {
	if file == "" {
		return work()
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("--cpu-profile: %w", err)
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		return errors.Join(fmt.Errorf("--cpu-profile: %w", err), out.Close())
	}
	err = work()
	pprof.StopCPUProfile()
	return errors.Join(err, out.Close())
}
