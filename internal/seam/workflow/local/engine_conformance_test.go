package local_test

import (
	"io/fs"
	"log/slog"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/seam/workflow/workflowtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	workflowtest.Run(t, func(t *testing.T, definitions fs.FS, functions map[string]workflow.TaskFunc) workflow.Engine {
		t.Helper()
		e, err := local.New(local.Config{Table: fileTable(t), Definitions: definitions, Functions: functions, Log: slog.New(slog.DiscardHandler)})
		check.Must(t, err)
		t.Cleanup(func() { cutOff(e) })
		return e
	})
}
