package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// resultNote is the file of a build's record with its result.
const resultNote = "result.json"

// readResult returns the result of a finished build; a revision without a result is absent.
func (b *Builder) readResult(revision string) (build.Result, error) {
	data, err := os.ReadFile(filepath.Join(b.recordOf(revision), resultNote))
	if errors.Is(err, os.ErrNotExist) {
		return build.Result{State: build.Absent}, nil
	}
	var stored build.Result
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		return build.Result{}, fmt.Errorf("read result of revision %s: %w", revision, err)
	}
	return stored, nil
}

// record writes a file of a build's record completely and durably, or not at all.
func (b *Builder) record(revision, name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return replaceFile(filepath.Join(b.recordOf(revision), name), data)
}
