//go:build browser

package e2e_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserConsoleThread acts as a person who reads how runs went, answers questions and edits a
// state: testdata/browser/console-thread.cjs contains the story.
func TestBrowserConsoleThread(t *testing.T) {
	s := newServer(t)
	d := s.deploy(t, scriptedRepository(t), "main")
	type story struct {
		Findings, Complaints                     []string
		Failed, Going, Stopped                   []string
		Evidence, Took                           string
		Buttons, Decisions, Before, After, RanOn []string
		AtWork, Followed                         []string
		Nodes                                    []int
		Args, Inbox, Review                      any
		Kept                                     bool
		Overflow                                 []int
	}
	var saw story
	browse(t, &saw, "console-thread.cjs", s.BaseURL, s.APIKey, d.ID, pictures())
	toBob := map[string]any{"to": "bob"}
	want := story{
		Findings: []string{}, Complaints: []string{},
		Failed:    []string{"waits for a worker", "model", "until it fails"},
		Going:     []string{"waits for a worker", "until the first output", "goes on"},
		Stopped:   []string{"waits for a worker", "until the first output", "until it was interrupted"},
		AtWork:    []string{"agent"},
		Followed:  []string{"/runs/RUN/stream"},
		Nodes:     []int{1, 0},
		Evidence:  "planted line\n",
		Took:      "1 min 23 s",
		Buttons:   []string{"Accept", "Accept as edited", "Answer"},
		Decisions: []string{"approve", "reject"},
		Before:    []string{"planted question", "ok"}, After: []string{"edited question"}, RanOn: []string{"edited again", "ok"},
		Args:  map[string]any{"to": "ann"},
		Inbox: map[string]any{"asked": []any{map[string]any{"type": "edit", "args": map[string]any{"action": "send", "args": toBob}}}},
		Review: map[string]any{"asked": map[string]any{"decisions": []any{
			map[string]any{"type": "edit", "edited_action": map[string]any{"name": "send", "args": toBob}}, map[string]any{"type": "reject", "message": "keep it"},
		}}},
		Kept: true, Overflow: []int{0, 0},
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Errorf("(-want +saw):\n%s", diff)
	}
}
