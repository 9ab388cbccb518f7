package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

func TestTimesToLive(t *testing.T) {
	t.Parallel()
	read := func(more string) (framework.Config, error) {
		return framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, ` + more + `}`}), "")
	}
	config, err := read(`"checkpointer": {"backend": "default", "ttl": {"strategy": "keep_latest", "default_ttl": 60, "sweep_interval_minutes": 10}}, "store": {"ttl": {"refresh_on_read": false, "default_ttl": 1.5}}`)
	minutes := 1.5
	want := build.Settings{Threads: &build.ThreadTTL{Strategy: "keep_latest", Minutes: 60}, Items: &build.ItemTTL{Minutes: &minutes, Still: true}}
	if diff := cmp.Diff(want, config.Settings); err != nil || diff != "" || len(config.Remarks) != 1 {
		t.Errorf("%v, %q, settings (-want +got):\n%s", err, config.Remarks, diff)
	}
	for more, words := range map[string]string{
		`"checkpointer": {"path": "./c.py:c"}`:               "- checkpointer.path: the platform keeps all checkpoints itself",
		`"checkpointer": {"serde": {"x": 1}}`:                "- checkpointer.serde: ",
		`"checkpointer": {"ttl": {"strategy": "archive"}}`:   "- checkpointer.ttl.strategy: must be",
		`"checkpointer": {"ttl": {"default_ttl": 0}}`:        "- checkpointer.ttl.default_ttl: must be more than 0",
		`"store": {"ttl": {"default_ttl": "soon"}}`:          "- store.ttl.default_ttl: must be a number",
		`"store": {"ttl": {"default_ttl": 1, "other": 1}}`:   "- store.ttl.other: is not a key of store.ttl",
		`"store": {"ttl": {"refresh_on_read": "sometimes"}}`: "- store.ttl.refresh_on_read: must be true or false",
	} {
		if _, err := read(more); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", more, err, words)
		}
	}
}
