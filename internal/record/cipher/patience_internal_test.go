package cipher

import (
	"strconv"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestPatienceForgets checks that what is remembered of deployments goes with its time, and that an
// answer ends a pause.
func TestPatienceForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := newPatience(func() time.Time { return now })
	var of keys.DeploymentParts
	for i := range 1000 {
		of = keys.DeploymentParts{Workspace: strconv.Itoa(i), Deployment: "d"}
		end, err := p.begin(of)
		check.Must(t, err)
		end()
		p.pause(of, silentPause)
		now = now.Add(time.Second)
	}
	if len(p.paused) > 31 || len(p.waits) > 31 {
		t.Errorf("%d pauses and %d waits are remembered", len(p.paused), len(p.waits))
	}
	if _, err := p.begin(of); !IsUnavailable(err) {
		t.Errorf("within the pause: %v", err)
	}
	p.answered(of)
	if end, err := p.begin(of); err != nil {
		t.Errorf("after an answer: %v", err)
	} else {
		end()
	}
	if _, known := p.paused[of]; known {
		t.Error("the pause is remembered after an answer")
	}
}

// TestPatienceCountsTheTimeOnce: questions at the same time keep a timer waiting once.
func TestPatienceCountsTheTimeOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := newPatience(func() time.Time { return now })
	of := keys.DeploymentParts{Workspace: "w", Deployment: "d"}
	var ends []func()
	for range 16 {
		end, err := p.begin(of)
		check.Must(t, err)
		ends = append(ends, end)
	}
	now = now.Add(mostWaiting - time.Second)
	for _, end := range ends {
		end()
	}
	end, err := p.begin(of)
	if err != nil {
		t.Fatalf("16 questions at the same time count more than once: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := p.begin(of); err == nil {
		t.Error("a question that is under way does not count")
	}
	now = now.Add(window)
	if _, err := p.begin(of); err != nil {
		t.Errorf("in the next window: %v", err)
	}
	end()
}
