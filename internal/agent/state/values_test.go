package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestReplaceReadsWhatJSONWrites(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		`null`:                           `{}`,
		`{}`:                             `{}`,
		` { "b" : [ 1 , { } ], "a": 1 }`: `{"a":1,"b":[1,{}]}`,
		`{"a":[],"b":null,"c":"<&>"}`:    `{"a":[],"b":null,"c":"\u003c\u0026\u003e"}`,
		`{"n":1.0,"big":123456789012345678901234567890,"e":1E5}`: `{"big":123456789012345678901234567890,"e":1E5,"n":1.0}`,
	}
	for raw, want := range tests {
		got := string(parse(t, raw).JSON())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
		if again := string(parse(t, got).JSON()); again != got {
			t.Errorf("second reading: got %s, want %s", again, got)
		}
	}
}

func TestReplaceRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`[]`, `"x"`, `1`, `{`} {
		if _, _, err := (state.Values{}).Replace(json.RawMessage(raw)); err == nil {
			t.Errorf("Replace(%s): got no error", raw)
		}
	}
}

func TestTheZeroValuesAreEmpty(t *testing.T) {
	t.Parallel()
	var v state.Values
	if got := string(v.JSON()); got != "{}" || v.Has("a") {
		t.Errorf("got %s, want an empty state", got)
	}
	v = reduce(t, v, `{"a":1}`)
	if got := string(v.JSON()); got != `{"a":1}` {
		t.Errorf("got %s", got)
	}
}

// TestReplaceYieldsTheDifference compares patches, because their size is the cost of a step.
func TestReplaceYieldsTheDifference(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before, values string
		want           state.Patch
	}{
		"nothing":          {`{"a":1,"b":[1]}`, `{"b": [1], "a": 1}`, state.Patch{}},
		"escapes":          {`{"a":"<","b":["<"]}`, `{"a":"<","b":["<"]}`, state.Patch{}},
		"value":            {`{"a":1}`, `{"a":2}`, state.Patch{Set: map[string]json.RawMessage{"a": raw(`2`)}}},
		"new":              {`{}`, `{"a":null}`, state.Patch{Set: map[string]json.RawMessage{"a": raw(`null`)}}},
		"gone":             {`{"a":1,"b":[2],"c":3}`, `{"c":3}`, state.Patch{Unset: []string{"a", "b"}}},
		"list grows":       {`{"a":[1,2]}`, `{"a":[1,2,3]}`, splice(2, `3`)},
		"list shrinks":     {`{"a":[1,2]}`, `{"a":[1]}`, splice(1)},
		"list changes":     {`{"a":[1,2,3]}`, `{"a":[1,5,3]}`, splice(1, `5`, `3`)},
		"list for value":   {`{"a":1}`, `{"a":[1]}`, state.Patch{Set: map[string]json.RawMessage{"a": raw(`[1]`)}}},
		"value for a list": {`{"a":[1]}`, `{"a":1}`, state.Patch{Set: map[string]json.RawMessage{"a": raw(`1`)}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, patch, err := parse(t, test.before).Replace(raw(test.values))
			check.Must(t, err)
			if diff := cmp.Diff(size(t, test.want), size(t, patch)); diff != "" {
				t.Errorf("patch %v, want %v", patch, test.want)
			}
			replica, err := parse(t, test.before).Apply(stored(t, patch))
			check.Must(t, err)
			want := string(parse(t, test.values).JSON())
			if diff := cmp.Diff([]string{want, want}, []string{string(live.JSON()), string(replica.JSON())}); diff != "" {
				t.Errorf("state, replayed state (-want +got):\n%s", diff)
			}
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// splice returns a patch of the list "a".
func splice(keep int, elements ...string) state.Patch {
	s := state.Splice{Keep: keep, Append: []json.RawMessage{}}
	for _, element := range elements {
		s.Append = append(s.Append, raw(element))
	}
	return state.Patch{Lists: map[string]state.Splice{"a": s}}
}

func TestReplaceThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"a":1}`)
	for _, values := range []string{`[1]`, `{"a":`, `7`} {
		after, _, err := v.Replace(raw(values))
		if got := string(after.JSON()); err == nil || got != `{"a":1}` {
			t.Errorf("Replace(%s): got %s and the error %v, want the state as it was and an error", values, got, err)
		}
	}
}

func TestApplyRefusesAPatchOfAnotherState(t *testing.T) {
	t.Parallel()
	if _, err := parse(t, `{"a":[1]}`).Apply(splice(2)); err == nil {
		t.Error("got no error for a patch that keeps two elements of one")
	}
}

// TestAPatchIsAsLargeAsItsChange makes the same change of a small and a large state.
func TestAPatchIsAsLargeAsItsChange(t *testing.T) {
	t.Parallel()
	history := func(n int) string {
		messages := make([]string, n)
		for i := range messages {
			messages[i] = fmt.Sprintf(`{"type":"ai","id":"m%05d","content":"<b>some text & more</b>"}`, i)
		}
		return strings.Join(messages, ", ")
	}
	const added = `{"type":"ai","id":"next","content":"x"}`
	tests := map[string]func(v state.Values, history string) (state.Values, state.Patch, error){
		"update with one message": func(v state.Values, _ string) (state.Values, state.Patch, error) {
			return reduceRaw(v, raw(`{"messages":[`+added+`]}`), counter())
		},
		"update with all messages": func(v state.Values, history string) (state.Values, state.Patch, error) {
			return reduceRaw(v, raw(`{"messages":[`+history+`, `+added+`]}`), counter())
		},
		"values": func(v state.Values, history string) (state.Values, state.Patch, error) {
			return v.Replace(raw(`{"messages": [` + history + `, ` + added + `]}`))
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sizes := map[int]int{}
			for _, n := range []int{10, 5000} {
				// The state is read from storage, as at the beginning of each run.
				v := parse(t, string(parse(t, `{"messages":[`+history(n)+`]}`).JSON()))
				_, patch, err := change(v, history(n))
				check.Must(t, err)
				sizes[n] = size(t, patch)
			}
			if limit := sizes[10] + len("5000"); sizes[5000] > limit {
				t.Errorf("the patch of a state of 5000 messages has %d bytes, want at most %d", sizes[5000], limit)
			}
		})
	}
}
