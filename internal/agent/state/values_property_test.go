package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestReplayMakesTheLiveState applies the stored patches of random changes to an empty state.
// After each patch, this state equals the live state.
func TestReplayMakesTheLiveState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var live, replica state.Values
		ids := counter()
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			before := string(live.JSON())
			next, patch, err := drawChange(t)(live, ids)
			after := string(next.JSON())
			if live = next; err != nil {
				if after != before {
					t.Fatalf("a change that failed (%v) made\n%s of\n%s", err, after, before)
				}
				continue
			}
			if replica, err = replica.Apply(throughStorage(t, patch)); err != nil {
				t.Fatal(err)
			}
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

// TestAChangeLeavesOtherStates makes changes from any earlier state, so that several states
// continue the same memory. No change affects an earlier state, or a patch that was not encoded
// yet. A patch makes the same state from a copy that shares no memory. Since makes each state
// from any other state.
func TestAChangeLeavesOtherStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type made struct {
			values state.Values
			text   string
			from   int
			patch  state.Patch
		}
		states, ids := []made{{text: "{}"}}, counter()
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			from := rapid.IntRange(0, len(states)-1).Draw(t, "state")
			next, patch, err := drawChange(t)(states[from].values, ids)
			if err == nil {
				states = append(states, made{next, string(next.JSON()), from, patch})
			}
			if rapid.Bool().Draw(t, "read") { // reading makes an index, which states share
				checkReading(t, states[rapid.IntRange(0, len(states)-1).Draw(t, "reads")].values)
			}
		}
		for i, s := range states {
			if got := string(s.values.JSON()); got != s.text {
				t.Fatalf("later changes make\n%s of state %d, which was\n%s", got, i, s.text)
			}
			checkReading(t, s.values)
			checkApply(t, states[s.from].text, s.patch, s.text)
			other := states[rapid.IntRange(0, len(states)-1).Draw(t, "other")]
			checkApply(t, other.text, s.values.Since(other.values), s.text)
			if got := s.values.Equal(other.values); got != (s.text == other.text) {
				t.Fatalf("Equal is %v of\n%s\nand\n%s", got, s.text, other.text)
			}
		}
	})
}

// checkApply applies a patch to a state that was read from its JSON.
func checkApply(t *rapid.T, before string, patch state.Patch, want string) {
	replica, _, err := state.Values{}.Replace(json.RawMessage(before))
	if err == nil {
		replica, err = replica.Apply(throughStorage(t, patch))
	}
	check.Must(t, err)
	if got := string(replica.JSON()); got != want {
		t.Fatalf("the patch makes\n%s of\n%s\nwant\n%s", got, before, want)
	}
}

// checkReading reads a state from its JSON and compares what both states know of the messages.
func checkReading(t *rapid.T, live state.Values) {
	again, _, err := state.Values{}.Replace(live.JSON())
	check.Must(t, err)
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
	check.Must(t, err)
	var back state.Patch
	check.Must(t, json.Unmarshal(raw, &back))
	return back
}

type change func(v state.Values, newID func() string) (state.Values, state.Patch, error)

func drawChange(t *rapid.T) change {
	if rapid.Bool().Draw(t, "replace") {
		object := json.RawMessage(drawObject(t, rapid.SliceOfNDistinct(stateMessages, 0, messageIDs, rapid.ID)))
		return func(v state.Values, _ func() string) (state.Values, state.Patch, error) { return v.Replace(object) }
	}
	object := json.RawMessage(drawObject(t, rapid.SliceOfN(updateMessages, 0, 4)))
	return func(v state.Values, newID func() string) (state.Values, state.Patch, error) {
		return reduceRaw(v, object, newID)
	}
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
