package state_test

import (
	"encoding/json"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/state"
)

func TestMergePieces(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ earlier, later, want string }{
		{`null`, `{"a":1}`, `{"a":1}`},
		{`{"a":1}`, `null`, `{"a":1}`},
		{`"Hel"`, `"lo"`, `"Hello"`},
		{`{"a":12345678901234567,"b":1.5,"c":{"d":1}}`, `{"a":1,"b":1,"c":{"d":2,"e":3}}`, `{"a":12345678901234568,"b":2.5,"c":{"d":3,"e":3}}`},
		{`1e308`, `1.7e308`, `1.7e308`},
		{`{"text":"a","id":"1","name":"n","type":"t","index":0,"created":5}`, `{"text":"b","id":"2","name":"","type":"u","index":1,"created":6}`, `{"created":5,"id":"2","index":0,"name":"n","text":"ab","type":"t"}`},
		{`{"a":null,"b":"x","c":true}`, `{"a":"x","b":null,"c":false}`, `{"a":"x","b":"x","c":false}`},
		{`{"a":"x","b":1,"c":[],"d":{}}`, `{"a":1,"b":"x","c":{},"d":[]}`, `{"a":1,"b":"x","c":{},"d":[]}`},
		{`[{"index":0,"args":"{"},5]`, `[{"index":0,"args":"}"},{"index":1,"args":"["},6]`, `[{"args":"{}","index":0},5,{"args":"[","index":1},6]`},
		{`[{"index":0,"id":"a","args":"x"}]`, `[{"index":0,"id":"b","args":"y"},{"index":0,"id":"a","args":"z"}]`, `[{"args":"xz","id":"a","index":0},{"args":"y","id":"b","index":0}]`},
		{`[{"index":null},{"index":[1]}]`, `[{"index":null},{"index":[1]}]`, `[{"index":null},{"index":[1]},{"index":null},{"index":[1]}]`},
	} {
		merged := state.MergePieces(state.DecodePiece(json.RawMessage(test.earlier)), state.DecodePiece(json.RawMessage(test.later)))
		if got, err := json.Marshal(merged); err != nil || string(got) != test.want {
			t.Errorf("%s and %s: got %s, %v, want %s", test.earlier, test.later, got, err, test.want)
		}
	}
}

func TestCompleted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``: ``, `x`: ``, `{]`: ``, `}`: ``, `{}}`: ``, `{"a" 1`: `{}`, "{\"a\":\"\n": `{}`,
		`{`: `{}`, ` {"`: `{}`, `{"a`: `{}`, `{"a"`: `{}`, `{"a":`: `{}`, `{"a":"`: `{"a":""}`, `{"a":"b`: `{"a":"b"}`, `{"a":"b"`: `{"a":"b"}`,
		`{"a":"b\`: `{"a":"b"}`, `{"a":"b\"`: `{"a":"b\""}`, `{"a":"\u00`: `{}`, `{"a":"{[,\\",`: `{"a":"{[,\\"}`,
		`{"a":1,"b`: `{"a":1}`, `{"a":1,"b":`: `{"a":1}`, `{"a":12`: `{"a":12}`, `{"a":-`: `{}`, `{"a":tru`: `{}`, `{"a":true`: `{"a":true}`,
		`{"a":[1,{"b":2},{"c`: `{"a":[1,{"b":2},{}]}`, `{"a":[1,`: `{"a":[1]}`, `{"a":{"b":{}`: `{"a":{"b":{}}}`, ` [1,2]`: `[1,2]`, `{"a":"b `: `{"a":"b "}`, `{"a":1}`: `{"a":1}`,
	} {
		if got := string(state.Completed(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
