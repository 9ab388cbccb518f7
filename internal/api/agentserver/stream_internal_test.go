package agentserver

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/agentserver/streammode"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/test/check"
)

// sends records what a stream hands over.
type sends struct {
	calls, bytes, largest, events int
	ids                           []string
}

func (s *sends) send(events ...web.Event) error {
	size := 0
	for _, e := range events {
		size += len(e.Data)
		if e.ID != "" {
			s.ids = append(s.ids, e.ID)
		}
	}
	s.calls, s.bytes, s.events, s.largest = s.calls+1, s.bytes+size, s.events+len(events), max(s.largest, size)
	return nil
}

// grown returns events that show a message of 512 KB in pieces.
func grown() (log []run.Event) {
	for i := range 128 {
		piece := record.Encode([]any{map[string]any{"type": "AIMessageChunk", "id": "m", "content": strings.Repeat("x", 4000)}, map[string]any{}})
		log = append(log, run.Event{Position: int64(i + 1), Name: run.EventMessages, Data: piece})
	}
	return log
}

// TestAStreamIsSentWhileItIsMade checks that a stream whose events repeat a whole message never
// holds more than one of these events, and what OutletBytes allows.
func TestAStreamIsSentWhileItIsMade(t *testing.T) {
	t.Parallel()
	messages := make([]json.RawMessage, 500)
	for i := range messages {
		messages[i] = record.Encode(map[string]any{"type": "ai", "id": fmt.Sprint(i), "content": strings.Repeat("x", 4000)})
	}
	whole := []run.Event{{Position: 1, Name: run.EventUpdates, Data: record.Encode(map[string]any{"n": map[string]any{"messages": messages}})}}
	r := run.Run{Request: run.Request{StreamModes: []string{string(model.StreamModeMessages)}}}
	for name, test := range map[string]struct {
		log     []run.Event
		largest int
	}{"pieces": {grown(), 256 * 4000}, "one update": {whole, 4000}} {
		var ofRun, ofThread sends
		out := &streammode.Outlet{Send: ofRun.send}
		of := server{}.translator(r, r.StreamModes, 0, out)
		check.Must(t, out.Each(test.log, 0, func(e run.Event) error { return of.One(t.Context(), e) }))
		all := &threadStream{modes: []model.ThreadStreamMode{model.ThreadStreamModeRunModes}}
		check.Must(t, all.newRunEvents(r, &streammode.Outlet{Send: ofThread.send}).translate(t.Context(), run.Part{Run: r, Events: test.log}))
		for kind, got := range map[string]sends{"run": ofRun, "thread": ofThread} {
			const envelope = 100
			if most := streammode.OutletBytes + test.largest + envelope; got.largest > most || got.bytes < 10*streammode.OutletBytes {
				t.Errorf("%s, stream of a %s: %d of %d bytes are held at a time, want at most %d", name, kind, got.largest, got.bytes, most)
			}
			if got.calls > 2+got.bytes/streammode.OutletBytes {
				t.Errorf("%s, stream of a %s: %d bytes are sent in %d parts", name, kind, got.bytes, got.calls)
			}
			if len(got.ids) != len(test.log) {
				t.Errorf("%s, stream of a %s: %d ids, want that of each event of the log: %d", name, kind, len(got.ids), len(test.log))
			}
		}
	}
}

// TestEventsThatTheClientHasAreNotEncoded checks it by the memory that is allocated; so it runs
// alone.
func TestEventsThatTheClientHasAreNotEncoded(t *testing.T) { //nolint:paralleltest // it counts the memory of the process
	log := grown()
	var got sends
	out := &streammode.Outlet{Send: got.send}
	of := server{}.translator(run.Run{}, []string{string(model.StreamModeMessages)}, 0, out)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	check.Must(t, out.Each(log, 127, func(e run.Event) error { return of.One(t.Context(), e) }))
	runtime.ReadMemStats(&after)
	if got.events != 1 || got.bytes < 128*4000 {
		t.Errorf("%d events with %d bytes are sent, want the last with the whole message", got.events, got.bytes)
	}
	if made := after.TotalAlloc - before.TotalAlloc; made > 16<<20 {
		t.Errorf("%d MB are allocated for a message of 512 KB", made>>20)
	}
}
