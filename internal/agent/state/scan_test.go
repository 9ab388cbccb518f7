package state_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestOnlyJSONIsTaken gives states texts in which some bytes were changed. A text that is no
// JSON object is refused, as the JSON package would refuse it, although most of it equals the
// known text. A text that is a JSON object is read as the JSON package reads it.
func TestOnlyJSONIsTaken(t *testing.T) {
	t.Parallel()
	bytes := rapid.SampledFrom([]byte("{}[]\",:\\ 0n1e-\x00\x7fé<u"))
	rapid.Check(t, func(t *rapid.T) {
		raw := []byte(drawObject(t, rapid.SliceOfNDistinct(stateMessages, 0, messageIDs, rapid.ID)))
		v, _, err := state.Values{}.Replace(raw)
		check.Must(t, err)
		if rapid.Bool().Draw(t, "as stored") {
			raw = append([]byte(nil), v.JSON()...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := rapid.IntRange(0, len(raw)-1).Draw(t, "place")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				raw[at] = bytes.Draw(t, "byte")
			case 1:
				raw = append(raw[:at:at], raw[at+1:]...)
			default:
				raw = append(raw[:at:at], append([]byte{bytes.Draw(t, "byte")}, raw[at:]...)...)
			}
			if len(raw) == 0 {
				return
			}
		}
		before := string(v.JSON())
		var want map[string]json.RawMessage
		wrong := json.Unmarshal(raw, &want)
		v, _, err = v.Replace(raw)
		if (err != nil) != (wrong != nil) {
			t.Fatalf("%q after %s: got %v, the JSON package says %v", raw, before, err, wrong)
		}
		after := string(v.JSON())
		if err != nil {
			if after != before {
				t.Fatalf("a text that was refused made\n%s of\n%s", after, before)
			}
			return
		}
		if want == nil {
			want = map[string]json.RawMessage{}
		}
		encoded, err := json.Marshal(want)
		check.Must(t, err)
		if after != string(encoded) {
			t.Fatalf("%q makes\n%s\nwant\n%s", raw, after, encoded)
		}
		checkReading(t, v)
		stored, err := state.Read(v.JSON())
		if err != nil || string(stored.JSON()) != after {
			t.Fatalf("read from storage: %v\n%s\nwant\n%s", err, stored.JSON(), after)
		}
	})
}

func TestCutTakesOutOneMember(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ object, value, rest string }{
		"first":          {`{"a":[1,{"b":2}],"c":"x"}`, `[1,{"b":2}]`, `{"c":"x"}`},
		"last":           {`{"c":"}\\\"","a":"\"a\":1"}`, `"\"a\":1"`, `{"c":"}\\\""}`},
		"only":           {`{"a":null}`, `null`, `{}`},
		"in another one": {`{"c":{"a":1}}`, ``, `{"c":{"a":1}}`},
		"none":           {`{}`, ``, `{}`},
		"white space":    {" { \"c\" : 1 , \"a\" : 2 } ", `2`, `{"c":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, rest, err := state.Cut([]byte(c.object), "z", "a")
			check.Must(t, err)
			if diff := cmp.Diff([]string{c.value, c.rest}, []string{string(values[1]), string(rest)}); diff != "" {
				t.Errorf("value and rest (-want +got):\n%s", diff)
			}
		})
	}
	for _, object := range []string{``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}}`, `[1]`, `{"a":"x}`, `{a:1}`} {
		if values, rest, err := state.Cut([]byte(object), "a"); err == nil {
			t.Errorf("%s: got %s and %s, want an error", object, values, rest)
		}
	}
}
