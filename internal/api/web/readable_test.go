package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	halfPair  = "JSON decode error: an escape is half of a surrogate pair"
	tooLarge  = "JSON decode error: a number is beyond the range of a double"
	tooNested = "JSON decode error: a value is nested more than 500 deep"
)

// nested returns a value of lists, each in another list.
func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// TestJSONThatOthersCannotRead sends JSON that this server can read, and that the parsers of other
// languages refuse or change.
func TestJSONThatOthersCannotRead(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct{ name, body, place, message string }{
		{"first half", `{"name":"a","free":{"x":["ok","\ud83d"]}}`, `["body","free","x",1]`, halfPair},
		{"first half and text", `{"name":"a","free":{"x":"\uD83Dab\n"}}`, `["body","free","x"]`, halfPair},
		{"first half twice", `{"name":"a","free":{"x":"\ud83d\ud83d\ude00"}}`, `["body","free","x"]`, halfPair},
		{"first half and another escape", `{"name":"a","free":{"x":"\udbff\u0041"}}`, `["body","free","x"]`, halfPair},
		{"second half", `{"name":"a","free":{"x":"\"\\\ude00"}}`, `["body","free","x"]`, halfPair},
		{"the pair in the wrong order", `{"name":"a","free":{"x":"\uDE00\uD83D"}}`, `["body","free","x"]`, halfPair},
		{"a described member", `{"name":"\udfff"}`, `["body","name"]`, halfPair},
		{"a name", `{"name":"a","free":{"y":1,"x\udc00":1}}`, `["body","free"]`, halfPair},
		{"a member that no schema knows", `{"name":"a","more":{"x":"\ud800"}}`, `["body","more","x"]`, halfPair},
		{"exponent", `{"name":"a","free":{"x":[0,{"y":1e400}]}}`, `["body","free","x",1,"y"]`, tooLarge},
		{"negative", `{"name":"a","free":{"x":-1.8E+308}}`, `["body","free","x"]`, tooLarge},
		{"digits", `{"name":"a","free":{"x":` + strings.Repeat("9", 5000) + `}}`, `["body","free","x"]`, tooLarge},
		{"digits and a small exponent", `{"name":"a","free":{"x":1` + strings.Repeat("0", 300) + `e9}}`, `["body","free","x"]`, tooLarge},
		{"digits and a negative exponent", `{"name":"a","free":{"x":1` + strings.Repeat("0", 310) + `e-1}}`, `["body","free","x"]`, tooLarge},
		{"a described number", `{"name":"a","count":1e999,"ratio":-1e999}`, `["body","count"]`, tooLarge},
		{"nesting", `{"name":"a","free":{"x":` + nested(499) + `}}`, `["body","free","x"` + strings.Repeat(",0", 14) + `]`, tooNested},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := []detail{{tt.place, "json_invalid", tt.message}}
			if diff := cmp.Diff(want, problemsOf(t, send(t, things, http.MethodPost, thingPath, tt.body))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONThatOthersCanRead sends what is close to what is refused.
func TestJSONThatOthersCanRead(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, value := range []string{
		`"\ud83d\ude00\uD83D\uDE00"`, `"\\ud83d"`, `"\\\\ud83d"`, `"😀\u0000\ud7ff\ue000\"\\"`, `{"\ud83d\ude00\"":"\n"}`, `"\\"`, `""`,
		`1.7976931348623157e308`, `-1E+308`, `1e-400`, `0e999`, `0.` + strings.Repeat("3", 400), strings.Repeat("9", 308), `1` + strings.Repeat("0", 310) + `e-9`,
		nested(498), `[[],[` + strings.Repeat("[],", 600) + `{}]]`,
	} {
		body := `{"name":"a","free":{"x":` + value + `}}`
		w := send(t, things, http.MethodPost, thingPath, body)
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != body {
			t.Errorf("%.80s: got %d %.200s", body, w.Code, got)
		}
	}
}

// TestABodyOfOneValue sends values that are in no list and no object.
func TestABodyOfOneValue(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for body, kind := range map[string]string{
		`0`: "model_attributes_type", `-7.5`: "model_attributes_type", ` 1e5 `: "model_attributes_type", `""`: "model_attributes_type", `true`: "model_attributes_type",
		`1e400`: "json_invalid", `-` + strings.Repeat("9", 400): "json_invalid", `"\ud800"`: "json_invalid",
	} {
		w := send(t, things, http.MethodPost, thingPath, body)
		problems := problemsOf(t, w)
		if w.Code != http.StatusUnprocessableEntity || len(problems) != 1 || problems[0].Type != kind {
			t.Errorf("%.20s: got %d %v, want %s", body, w.Code, problems, kind)
		}
	}
}

// BenchmarkCheckReadable measures the check of 25 MB of different kinds.
func BenchmarkCheckReadable(b *testing.B) {
	const size = 25 << 20
	for name, part := range map[string]string{
		"Messages":   `{"type":"human","content":"` + strings.Repeat("What is the weather in San Francisco? ", 20) + `","id":"019a7d4e"},`,
		"Escapes":    `"\"\n\ud83d\ude00\\",`,
		"Numbers":    `-0.0123456789,1.25e-05,`,
		"Structures": `{"a":[1,{"b":null}]},`,
	} {
		text := []byte("[" + strings.Repeat(part, size/len(part)) + "0]")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				check.Must(b, web.CheckReadable(text))
			}
		})
	}
}
