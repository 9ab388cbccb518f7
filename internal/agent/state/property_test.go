package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/state"
)

// TestReplayMakesTheLiveState applies the stored patches of random changes to an empty state.
// After each patch, this state equals the live state.
func TestReplayMakesTheLiveState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live, replica, ids := new(state.Values), new(state.Values), counter()
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			before := string(live.JSON())
			patch, err := drawChange(t)(live, ids)
			if err != nil {
				if after := string(live.JSON()); after != before {
					t.Fatalf("a change that failed (%v) made\n%s of\n%s", err, after, before)
				}
				continue
			}
			if err := replica.Apply(throughStorage(t, patch)); err != nil {
				t.Fatal(err)
			}
			after := string(live.JSON())
			if replayed := string(replica.JSON()); replayed != after {
				t.Fatalf("replay makes\n%s\nlive\n%s", replayed, after)
			}
			if patch.Empty() != (before == after) {
				t.Fatalf("the patch %v is of\n%s\nto\n%s", patch, before, after)
			}
			checkReading(t, live)
		}
	})
}

// TestPatchesGoWithAnyCopyOfTheState applies patches to a copy that parses each state anew, so
// that the states share no memory.
func TestPatchesGoWithAnyCopyOfTheState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live, ids := new(state.Values), counter()
		var patches []state.Patch
		var states []string
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			patch, err := drawChange(t)(live, ids)
			if err != nil {
				continue
			}
			// The patches are not encoded until the end: later changes must not modify their
			// memory.
			patches, states = append(patches, patch), append(states, string(live.JSON()))
		}
		replica := new(state.Values)
		for i, patch := range patches {
			if err := replica.Apply(patch); err != nil {
				t.Fatal(err)
			}
			if got := string(replica.JSON()); got != states[i] {
				t.Fatalf("after patch %d: got\n%s\nwant\n%s", i, got, states[i])
			}
		}
	})
}

// TestACopyChangesOnItsOwn changes a state and copies of it in any order, so that several
// states share the same memory.
func TestACopyChangesOnItsOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids, states, want := counter(), []*state.Values{new(state.Values)}, []string{"{}"}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			at := rapid.IntRange(0, len(states)-1).Draw(t, "state")
			if rapid.Bool().Draw(t, "copy") {
				states, want = append(states, states[at].Clone()), append(want, want[at])
			}
			before := states[at].Clone()
			if patch, err := drawChange(t)(states[at], ids); err == nil {
				if err := before.Apply(throughStorage(t, patch)); err != nil {
					t.Fatal(err)
				}
				states, want = append(states, before), append(want, string(states[at].JSON()))
			}
			want[at] = string(states[at].JSON())
			for i, s := range states {
				if got := string(s.JSON()); got != want[i] {
					t.Fatalf("a change of state %d makes\n%s of state %d, which was\n%s", at, got, i, want[i])
				}
				checkReading(t, s)
			}
		}
	})
}

// TestSinceMakesTheLiveState checks Since with any earlier state, on a copy that shares no
// memory with it.
func TestSinceMakesTheLiveState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		live, ids := new(state.Values), counter()
		var snapshots []*state.Values
		var texts []json.RawMessage
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			snapshots, texts = append(snapshots, live.Snapshot()), append(texts, live.JSON())
			if _, err := drawChange(t)(live, ids); err != nil {
				continue
			}
			for i, snapshot := range snapshots {
				replica, err := state.Parse(texts[i])
				if err != nil {
					t.Fatal(err)
				}
				if err := replica.Apply(throughStorage(t, live.Since(snapshot))); err != nil {
					t.Fatal(err)
				}
				if got, want := string(replica.JSON()), string(live.JSON()); got != want {
					t.Fatalf("what is new since\n%s\nmakes\n%s\nlive\n%s", texts[i], got, want)
				}
			}
		}
	})
}

// checkReading reads a state from its JSON and compares what both states know of the messages.
func checkReading(t *rapid.T, live *state.Values) {
	again, err := state.Parse(live.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(again.JSON()), string(live.JSON()); got != want {
		t.Fatalf("read back:\n%s\nwant\n%s", got, want)
	}
	for n := range messageIDs {
		id := fmt.Sprintf("m%d", n)
		if live.Has(id) != again.Has(id) {
			t.Fatalf("Has(%s) is %v in the live state, %v in the one read back", id, live.Has(id), again.Has(id))
		}
	}
}

func throughStorage(t *rapid.T, p state.Patch) state.Patch {
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back state.Patch
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

type change func(v *state.Values, newID func() string) (state.Patch, error)

func drawChange(t *rapid.T) change {
	if rapid.Bool().Draw(t, "replace") {
		object := json.RawMessage(drawObject(t, rapid.SliceOfNDistinct(stateMessages, 0, messageIDs, rapid.ID)))
		return func(v *state.Values, _ func() string) (state.Patch, error) { return v.Replace(object) }
	}
	object := json.RawMessage(drawObject(t, rapid.SliceOfN(updateMessages, 0, 4)))
	return func(v *state.Values, newID func() string) (state.Patch, error) { return v.Reduce(object, newID) }
}

// messageIDs is how many different message ids the random changes use.
const messageIDs = 5

var values = rapid.SampledFrom([]string{
	`1`, `1.0`, `null`, `"x"`, `"<é\u2028>"`, `{}`, `{"k": [1]}`, `[]`, `[1]`, `[1, 2]`, `[1,2]`, `[1,3,2]`, `[{"a":"<"},2]`,
})

func drawID(t *rapid.T) string {
	return fmt.Sprintf("m%d", rapid.IntRange(0, messageIDs-1).Draw(t, "id"))
}

// stateMessages are the messages of an agent that reports its whole state; each id is in it
// once.
var stateMessages = rapid.Custom(func(t *rapid.T) string {
	return fmt.Sprintf(`{"type": "ai", "id": %q, "content": "<a>"}`, drawID(t))
})

// updateMessages are the messages of an update.
var updateMessages = rapid.Custom(func(t *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0:
		return fmt.Sprintf(`{"type":"remove","id":%q}`, drawID(t))
	case 1:
		return `{"role":"user","content":"<hi>"}`
	case 2:
		return `["ai", "pair"]`
	case 3:
		return `{"type":"remove","id":"__remove_all__"}`
	case 4:
		return rapid.SampledFrom([]string{`"text"`, `"text"`, `"text"`, `7`, `{"role":"cat"}`}).Draw(t, "odd")
	default:
		content := rapid.SampledFrom([]string{"<a>", "b"}).Draw(t, "content")
		return fmt.Sprintf(`{"type": "ai", "id": %q, "content": %q}`, drawID(t), content)
	}
})

// drawObject draws a state or an update, with white space as some agents write it.
func drawObject(t *rapid.T, messages *rapid.Generator[[]string]) string {
	var members []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "<c>"}), 0, 2, rapid.ID).Draw(t, "names") {
		members = append(members, fmt.Sprintf("%q: %s", name, values.Draw(t, "value")))
	}
	switch rapid.IntRange(0, 5).Draw(t, "shape") {
	case 0:
		members = append(members, `"messages": `+rapid.SampledFrom([]string{`null`, `[]`, `"x"`, `{}`, `7`}).Draw(t, "odd messages"))
	case 1:
	default:
		members = append(members, `"messages": [`+strings.Join(messages.Draw(t, "messages"), ",")+`]`)
	}
	return "{" + strings.Join(members, ", ") + "}"
}
