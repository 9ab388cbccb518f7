package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// storedResult is the content of result.json.
type storedResult struct {
	State     build.State    `json:"state"`
	CommitSHA string         `json:"commit_sha,omitempty"`
	Artifact  build.Artifact `json:"artifact"`
	Record    build.Record   `json:"record"`
	Reason    string         `json:"reason,omitempty"`
	Message   string         `json:"message,omitempty"`
}

func (b *Builder) resultPath(revision string) string {
	return filepath.Join(b.recordOf(revision), "result.json")
}

// readResult returns the result of a finished build; a revision without a result is absent.
func (b *Builder) readResult(revision string) (build.Result, error) {
	data, err := os.ReadFile(b.resultPath(revision))
	if errors.Is(err, os.ErrNotExist) {
		return build.Result{State: build.Absent}, nil
	}
	var stored storedResult
	if err == nil {
		err = json.Unmarshal(data, &stored)
	}
	if err != nil {
		return build.Result{}, fmt.Errorf("read result of revision %s: %w", revision, err)
	}
	return build.Result(stored), nil
}

// writeResult stores a result completely and durably, or not at all.
func (b *Builder) writeResult(revision string, result build.Result) error {
	data, err := json.Marshal(storedResult(result))
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if err := replaceFile(b.resultPath(revision), data); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
