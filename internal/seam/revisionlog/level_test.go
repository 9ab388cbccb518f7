package revisionlog_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

func TestLevelOf(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]revisionlog.Level{
		"":                  revisionlog.Info,
		"listening":         revisionlog.Info,
		"an error occurred": revisionlog.Info,
		"ERRORS: 0":         revisionlog.Info,
		"ERROR: it broke":   revisionlog.Error,
		"[WARN] slow":       revisionlog.Warning,
		"WARNING:root:slow": revisionlog.Warning,
		"2026-11-20 12:00:00,123 - agent - DEBUG - said hello": revisionlog.Debug,
		"FATAL out of memory":                   revisionlog.Critical,
		`{"msg": "it broke", "level": "error"}`: revisionlog.Error,
		`{"severity":"Warning"}`:                revisionlog.Warning,
		`{"message": "ERROR"}`:                  revisionlog.Info,
		"the request took long, so that it is an ERROR, which is written far behind the beginning":     revisionlog.Error,
		"the request took long, so that it is, as written even farther behind the beginning, an ERROR": revisionlog.Info,
	} {
		if got := revisionlog.LevelOf(line); got != want {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
	if !revisionlog.Error.Reaches(revisionlog.Warning) || revisionlog.Info.Reaches(revisionlog.Warning) || !revisionlog.Debug.Reaches("") {
		t.Error("levels are not in order")
	}
}
