package state_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

const complete = `"additional_kwargs":{},"content":"hi","id":"new-1","response_metadata":{},"type":`

// TestReduceMergesMessages checks the one channel that is not overwritten.
func TestReduceMergesMessages(t *testing.T) {
	t.Parallel()
	const ab = `{"messages":[{"type":"human","id":"a"},{"type":"ai","id":"b"}]}`
	tests := map[string]struct{ before, update, want string }{
		"appends":                     {ab, `{"messages":[{"type":"ai","id":"c"}]}`, `{"messages":[{"type":"human","id":"a"},{"type":"ai","id":"b"},{"type":"ai","id":"c"}]}`},
		"accepts one for a list":      {ab, `{"messages":{"type":"ai","id":"c"}}`, `{"messages":[{"type":"human","id":"a"},{"type":"ai","id":"b"},{"type":"ai","id":"c"}]}`},
		"replaces in place":           {ab, `{"messages":[{"type":"ai","id":"a","content":"x"}]}`, `{"messages":[{"type":"ai","id":"a","content":"x"},{"type":"ai","id":"b"}]}`},
		"replaces its own":            {ab, `{"messages":[{"type":"ai","id":"c"},{"type":"tool","id":"c"}]}`, `{"messages":[{"type":"human","id":"a"},{"type":"ai","id":"b"},{"type":"tool","id":"c"}]}`},
		"removes":                     {ab, `{"messages":[{"type":"remove","id":"a"}]}`, `{"messages":[{"type":"ai","id":"b"}]}`},
		"removes and then replaces":   {ab, `{"messages":[{"type":"remove","id":"a"},{"type":"ai","id":"b","content":"x"}]}`, `{"messages":[{"type":"ai","id":"b","content":"x"}]}`},
		"removes and appends again":   {ab, `{"messages":[{"type":"remove","id":"a"},{"type":"ai","id":"a"}]}`, `{"messages":[{"type":"ai","id":"b"},{"type":"ai","id":"a"}]}`},
		"removes, appends the same":   {ab, `{"messages":[{"type":"remove","id":"b"},{"type":"ai","id":"b"}]}`, ab},
		"removes all, puts them back": {ab, `{"messages":[{"type":"remove","id":"__remove_all__"},{"type":"human","id":"a"},{"type":"ai","id":"b"}]}`, ab},
		"needs no removal":            {ab, `{"messages":[{"type":"remove","id":"gone"}]}`, ab},
		"removes one after the other": {
			ab, `{"messages":[{"type":"remove","id":"a"},{"type":"ai","id":"c"},{"type":"remove","id":"b"},{"type":"ai","id":"d"},` +
				`{"type":"remove","id":"c"},{"type":"ai","id":"d","content":"x"},{"type":"ai","id":"c"}]}`,
			`{"messages":[{"type":"ai","id":"d","content":"x"},{"type":"ai","id":"c"}]}`,
		},
		"removes all":                 {ab, `{"messages":[{"type":"remove","id":"__remove_all__"}]}`, `{"messages":[]}`},
		"removes all before the rest": {ab, `{"messages":[{"type":"ai","id":"c"},{"type":"remove","id":"__remove_all__"},{"type":"ai","id":"a"}]}`, `{"messages":[{"type":"ai","id":"a"}]}`},
		"takes null for none":         {ab, `{"messages":null}`, ab},
		"completes a role with an id": {`{}`, `{"messages":[{"id":"c","role":"user"}]}`, `{"messages":[{"additional_kwargs":{},"id":"c","response_metadata":{},"type":"human"}]}`},
		"completes a type and a role": {`{}`, `{"messages":[{"id":"c","type":"ai","role":"x"}]}`, `{"messages":[{"additional_kwargs":{},"id":"c","response_metadata":{},"role":"x","type":"ai"}]}`},
		"takes an empty list":         {`{}`, `{"messages":[]}`, `{"messages":[]}`},
		"makes no list of null":       {`{}`, `{"messages":null}`, `{}`},
		"takes the place of a text":   {`{"messages":"x"}`, `{"messages":[]}`, `{"messages":[]}`},
		"keeps bytes":                 {`{}`, `{"messages":[{"id":"a","n":1.00,"type":"ai","content":"é","z":{"b":1,"a":2}}]}`, `{"messages":[{"id":"a","n":1.00,"type":"ai","content":"é","z":{"b":1,"a":2}}]}`},
		"takes out white space":       {`{}`, `{"messages": [{"id": "a", "type": "ai"}]}`, `{"messages":[{"id":"a","type":"ai"}]}`},
		"coerces a user":              {`{}`, `{"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{` + complete + `"human"}]}`},
		"coerces an assistant":        {`{}`, `{"messages":[{"role":"assistant","content":"hi"}]}`, `{"messages":[{` + complete + `"ai"}]}`},
		"coerces a system":            {`{}`, `{"messages":[{"role":"system","content":"hi"}]}`, `{"messages":[{` + complete + `"system"}]}`},
		"coerces a developer":         {`{}`, `{"messages":[{"role":"developer","content":"hi"}]}`, `{"messages":[{` + complete + `"system"}]}`},
		"coerces a tool":              {`{}`, `{"messages":[{"role":"tool","content":"hi"}]}`, `{"messages":[{` + complete + `"tool"}]}`},
		"coerces a text":              {`{}`, `{"messages":["hi"]}`, `{"messages":[{` + complete + `"human"}]}`},
		"coerces a lone text":         {`{}`, `{"messages":"hi"}`, `{"messages":[{` + complete + `"human"}]}`},
		"coerces a pair":              {`{}`, `{"messages":[["ai","hi"]]}`, `{"messages":[{` + complete + `"ai"}]}`},
		"coerces a type without id":   {`{}`, `{"messages":[{"type":"ai","content":"hi"}]}`, `{"messages":[{` + complete + `"ai"}]}`},
		"gives each its own id":       {`{}`, `{"messages":["a","b"]}`, `{"messages":[{"additional_kwargs":{},"content":"a","id":"new-1","response_metadata":{},"type":"human"},{"additional_kwargs":{},"content":"b","id":"new-2","response_metadata":{},"type":"human"}]}`},
		"keeps what it does not know": {`{}`, `{"messages":[{"role":"user","id":"a","content":[{"type":"text"}],"name":"n","additional_kwargs":{"k":1}}]}`, `{"messages":[{"additional_kwargs":{"k":1},"content":[{"type":"text"}],"id":"a","name":"n","response_metadata":{},"type":"human"}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkReduce(t, test.before, test.update, test.want)
		})
	}
}

// TestReduceOverwritesChannels checks every channel except the messages.
func TestReduceOverwritesChannels(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ before, update, want string }{
		"adds":                        {`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		"overwrites":                  {`{"a":1,"b":2}`, `{"a":[1]}`, `{"a":[1],"b":2}`},
		"overwrites a list":           {`{"a":[1,2,3]}`, `{"a":[1,4]}`, `{"a":[1,4]}`},
		"overwrites a list with less": {`{"a":[1,2,3]}`, `{"a":[]}`, `{"a":[]}`},
		"overwrites a list with text": {`{"a":[1,2,3]}`, `{"a":"x"}`, `{"a":"x"}`},
		"takes null as a value":       {`{"a":1}`, `{"a":null,"b":null}`, `{"a":null,"b":null}`},
		"takes an empty list":         {`{}`, `{"a":[]}`, `{"a":[]}`},
		"changes nothing for null":    {`{"a":1}`, `null`, `{"a":1}`},
		"changes nothing for {}":      {`{"a":1}`, `{}`, `{"a":1}`},
		"quotes names":                {`{}`, `{"a\"<\n":1}`, `{"a\"\u003c\n":1}`},
		"needs no messages":           {`{"messages":[{"type":"ai","id":"a"}]}`, `{"a":1}`, `{"a":1,"messages":[{"type":"ai","id":"a"}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkReduce(t, test.before, test.update, test.want)
		})
	}
}

// checkReduce compares the new state, and the state that results from applying the stored
// patch to the old state.
func checkReduce(t *testing.T, before, update, want string) {
	t.Helper()
	live, patch, err := reduceRaw(parse(t, before), json.RawMessage(update), counter())
	check.Must(t, err)
	if diff := cmp.Diff(want, string(live.JSON())); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	replica, err := parse(t, before).Apply(stored(t, patch))
	check.Must(t, err)
	if diff := cmp.Diff(want, string(replica.JSON())); diff != "" {
		t.Errorf("replayed state (-want +got):\n%s", diff)
	}
	if got := before == want; got != patch.Empty() {
		t.Errorf("the patch is empty: %v, want %v", patch.Empty(), got)
	}
}

func TestAMistakeInAnUpdateIsAnError(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"list":            `[1]`,
		"text":            `"x"`,
		"no JSON":         `{"a":`,
		"unknown role":    `{"a":2,"b":3,"messages":[{"type":"remove","id":"a"},{"type":"ai","id":"b","content":"x"},{"role":"cat"}]}`,
		"no role":         `{"a":2,"messages":[{"content":"x"}]}`,
		"number":          `{"a":2,"messages":[{"type":"remove","id":"__remove_all__"},1]}`,
		"number for list": `{"a":2,"messages":1}`,
		"triple":          `{"a":2,"messages":[{"type":"ai","id":"c"},["user","a","b"]]}`,
		"null message":    `{"a":2,"messages":[null]}`,
	}
	for name, update := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := state.Coerce(json.RawMessage(update), counter()); err == nil {
				t.Error("got no error")
			}
		})
	}
}

func TestHasKnowsTheMessagesOfTheState(t *testing.T) {
	t.Parallel()
	v := parse(t, `{"messages":[{"type":"ai","id":"a"},{"type":"ai","id":"b"},{"type":"ai"}]}`)
	v = reduce(t, v, `{"messages":[{"type":"remove","id":"a"},{"type":"ai","id":"c"}]}`)
	for id, want := range map[string]bool{"a": false, "b": true, "c": true, "": false} {
		if got := v.Has(id); got != want {
			t.Errorf("Has(%q): got %v, want %v", id, got, want)
		}
	}
	v, _, err := v.Replace(json.RawMessage(`{"messages":[{"type":"ai","id":"d"}]}`))
	check.Must(t, err)
	if v.Has("b") || !v.Has("d") {
		t.Error("Has goes by the messages before Replace")
	}
}
