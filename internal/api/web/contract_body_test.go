package web_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

func TestBodyProblems(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct {
		name, body string
		want       []detail
	}{
		{"missing member", `{}`, []detail{{`["body","name"]`, "missing", "Field required"}}},
		{"missing members of an item", `{"name":"a","inners":[{"a":"x","b":1},{}]}`, []detail{
			{`["body","inners",1,"a"]`, "missing", "Field required"},
			{`["body","inners",1,"b"]`, "missing", "Field required"},
		}},
		{"string", `{"name":1}`, []detail{{`["body","name"]`, "string_type", "Input should be a valid string"}}},
		{"string that may be null", `{"name":"a","text":1}`, []detail{{`["body","text"]`, "string_type", "Input should be a valid string"}}},
		{"null for a string", `{"name":null}`, []detail{{`["body","name"]`, "string_type", "Input should be a valid string"}}},
		{"too short", `{"name":""}`, []detail{{`["body","name"]`, "string_too_short", "String should have at least 1 character"}}},
		{"too short, plural", `{"name":"a","pad":"x"}`, []detail{{`["body","pad"]`, "string_too_short", "String should have at least 2 characters"}}},
		{"too long, and against the pattern", `{"name":"ABCDEFGHI"}`, []detail{{`["body","name"]`, "string_too_long", "String should have at most 8 characters"}}},
		{"pattern", `{"name":"A"}`, []detail{{`["body","name"]`, "string_pattern_mismatch", "String should match pattern '^[a-z]*$'"}}},
		{"pattern and a final newline", `{"name":"a\n"}`, []detail{{`["body","name"]`, "string_pattern_mismatch", "String should match pattern '^[a-z]*$'"}}},
		{"uuid", `{"name":"a","owner":"x"}`, []detail{{`["body","owner"]`, "uuid_parsing", "Input should be a valid UUID"}}},
		{"uuid of another type", `{"name":"a","owner":7}`, []detail{{`["body","owner"]`, "uuid_type", "UUID input should be a string"}}},
		{"date-time", `{"name":"a","at":"yesterday"}`, []detail{{`["body","at"]`, "datetime_parsing", "Input should be a valid datetime"}}},
		{"date-time of another type", `{"name":"a","at":true}`, []detail{{`["body","at"]`, "datetime_type", "Input should be a valid datetime"}}},
		{"uri", `{"name":"a","url":"no scheme"}`, []detail{{`["body","url"]`, "url_parsing", "Input should be a valid URL"}}},
		{"uri of another type", `{"name":"a","url":[]}`, []detail{{`["body","url"]`, "url_type", "URL input should be a string"}}},
		{"uri reference", `{"name":"a","link":"%zz"}`, []detail{{`["body","link"]`, "url_parsing", "Input should be a valid URL"}}},
		{"another format", `{"name":"a","oddity":"x"}`, []detail{{`["body","oddity"]`, "value_error", "Input should be a valid ipv4"}}},
		{"boolean", `{"name":"a","flag":"true"}`, []detail{{`["body","flag"]`, "bool_type", "Input should be a valid boolean"}}},
		{"integer", `{"name":"a","count":"1"}`, []detail{{`["body","count"]`, "int_type", "Input should be a valid integer"}}},
		{"integer with a fraction", `{"name":"a","count":1.5}`, []detail{{`["body","count"]`, "int_from_float", "Input should be a valid integer, got a number with a fractional part"}}},
		{"minimum", `{"name":"a","count":-1}`, []detail{{`["body","count"]`, "greater_than_equal", "Input should be greater than or equal to 0"}}},
		{"maximum", `{"name":"a","count":11}`, []detail{{`["body","count"]`, "less_than_equal", "Input should be less than or equal to 10"}}},
		{"number", `{"name":"a","ratio":"1"}`, []detail{{`["body","ratio"]`, "float_type", "Input should be a valid number"}}},
		{"exclusive minimum", `{"name":"a","ratio":0}`, []detail{{`["body","ratio"]`, "greater_than", "Input should be greater than 0"}}},
		{"exclusive maximum", `{"name":"a","ratio":1}`, []detail{{`["body","ratio"]`, "less_than", "Input should be less than 1"}}},
		{"multiple", `{"name":"a","ratio":0.25}`, []detail{{`["body","ratio"]`, "multiple_of", "Input should be a multiple of 0.1"}}},
		{"enum", `{"name":"a","color":"pink"}`, []detail{{`["body","color"]`, "enum", "Input should be 'red', 'green' or 'blue'"}}},
		{"enum of another type", `{"name":"a","color":1}`, []detail{{`["body","color"]`, "enum", "Input should be 'red', 'green' or 'blue'"}}},
		{"enum that may be null", `{"name":"a","shade":"light"}`, []detail{{`["body","shade"]`, "enum", "Input should be 'dark'"}}},
		{"model", `{"name":"a","inner":"x"}`, []detail{{`["body","inner"]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}}},
		{"members of a model that may be null", `{"name":"a","inner":{"a":1,"c":2}}`, []detail{
			{`["body","inner","a"]`, "string_type", "Input should be a valid string"},
			{`["body","inner","b"]`, "missing", "Field required"},
			{`["body","inner","c"]`, "string_type", "Input should be a valid string"},
		}},
		{"dictionary", `{"name":"a","free":[]}`, []detail{{`["body","free"]`, "dict_type", "Input should be a valid dictionary"}}},
		{"value of a dictionary", `{"name":"a","labels":{"x":1}}`, []detail{{`["body","labels","x"]`, "string_type", "Input should be a valid string"}}},
		{"raw, but described", `{"name":"a","spec":{"a":"x","b":"y"}}`, []detail{{`["body","spec","b"]`, "int_type", "Input should be a valid integer"}}},
		{"list", `{"name":"a","few":{}}`, []detail{{`["body","few"]`, "list_type", "Input should be a valid list"}}},
		{"item of a list", `{"name":"a","few":["x",2]}`, []detail{{`["body","few",1]`, "string_type", "Input should be a valid string"}}},
		{"list too short", `{"name":"a","few":[]}`, []detail{{`["body","few"]`, "too_short", "List should have at least 1 item after validation, not 0"}}},
		{"list too long", `{"name":"a","few":["a","b","c"]}`, []detail{{`["body","few"]`, "too_long", "List should have at most 2 items after validation, not 3"}}},
		{"alternatives: the list was meant", `{"name":"a","nodes":[1]}`, []detail{{`["body","nodes",0]`, "string_type", "Input should be a valid string"}}},
		{"alternatives: the string was meant", `{"name":"a","nodes":"x"}`, []detail{{`["body","nodes"]`, "enum", "Input should be '*'"}}},
		{"alternatives: none was meant", `{"name":"a","nodes":7}`, []detail{{`["body","nodes"]`, "list_type", "Input should be a valid list"}}},
		{"alternatives: null is none", `{"name":"a","maybe":7}`, []detail{{`["body","maybe"]`, "string_type", "Input should be a valid string"}}},
		{"null wanted", `{"name":"a","nothing":1}`, []detail{{`["body","nothing"]`, "none_required", "Input should be None"}}},
		{"all at once, in order", `{"flag":0,"few":["a",1],"count":"x","inners":[{"a":"x"},3]}`, []detail{
			{`["body","count"]`, "int_type", "Input should be a valid integer"},
			{`["body","few",1]`, "string_type", "Input should be a valid string"},
			{`["body","flag"]`, "bool_type", "Input should be a valid boolean"},
			{`["body","inners",0,"b"]`, "missing", "Field required"},
			{`["body","inners",1]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"},
			{`["body","name"]`, "missing", "Field required"},
		}},
		{"an array for an object", `[]`, []detail{{`["body"]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}}},
		{"null for an object", ` null `, []detail{{`["body"]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}}},
		{"a string for an object", `"a"`, []detail{{`["body"]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}}},
		{"no body", "", []detail{{`["body"]`, "missing", "Field required"}}},
		{"not JSON", `{"name": a}`, []detail{{`["body",10]`, "json_invalid", "JSON decode error: invalid character 'a' looking for beginning of value"}}},
		{"cut off", `{"name":`, []detail{{`["body",8]`, "json_invalid", "JSON decode error: unexpected end of JSON input"}}},
		{"more after the end", `{"name":"a"} {}`, []detail{{`["body",14]`, "json_invalid", "JSON decode error: invalid character '{' after top-level value"}}},
		{"space only", " \n", []detail{{`["body",2]`, "json_invalid", "JSON decode error: unexpected end of JSON input"}}},
		{"not UTF-8", "{\"name\":\"\xff\"}", []detail{{`["body",9]`, "json_invalid", "JSON decode error: the text is not UTF-8"}}},
		{"not UTF-8 in a free-form part", "{\"name\":\"a\",\"free\":{\"x\":\"ok\xc3\"}}", []detail{{`["body",27]`, "json_invalid", "JSON decode error: the text is not UTF-8"}}},
		{"a number for an object", " 1 ", []detail{{`["body"]`, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(t, send(t, things, http.MethodPost, thingPath, tt.body))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems of %s (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestPathAndBodyProblemsAreReportedTogether(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, send(t, newThings(t), http.MethodPost, "/things/x", `{}`))
	want := []detail{
		{`["path","thing_id"]`, "uuid_parsing", "Input should be a valid UUID"},
		{`["body","name"]`, "missing", "Field required"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestMembersThatAreNotKnown checks that members may have the public service's spelling, too;
// members that no schema knows are reported, and not used.
func TestMembersThatAreNotKnown(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	public := publicname.Public("framework_note")
	for _, tt := range []struct{ body, bound, warning string }{
		{`{"name":"a"}`, `{"name":"a"}`, ""},
		{`{"name":"a","` + public + `":"x"}`, `{"name":"a","framework_note":"x"}`, ""},
		{`{"name":"a","` + public + `":"x","framework_note":"y"}`, `{"name":"a","framework_note":"y"}`, `299 - "unknown and ignored: ` + public + `"`},
		{`{"name":"a","naem":"b","inner":{"a":"x","b":1,"d":[]},"free":{"x":1}}`, `{"name":"a","inner":{"a":"x","b":1},"free":{"x":1}}`, `299 - "unknown and ignored: inner.d, naem"`},
		{`{"name":"a","\r\nX-Evil: 1":1}`, `{"name":"a"}`, ""},
	} {
		w := send(t, things, http.MethodPost, thingPath, tt.body)
		if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != tt.bound {
			t.Errorf("bound %s: got %d %s, want %s", tt.body, w.Code, got, tt.bound)
		}
		if got := w.Header().Get("Warning"); got != tt.warning {
			t.Errorf("%s: the warning is %q, want %q", tt.body, got, tt.warning)
		}
	}
}

// TestBoundBody checks that the handler gets the checked values, and that free-form parts are
// as the client wrote them.
func TestBoundBody(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct{ name, body, want string }{
		{"unknown members are ignored", `{"name":"a","more":{"x":[1]}}`, `{"name":"a"}`},
		{"null stands for absent", `{"name":"a","text":null,"inner":null,"labels":null,"owner":null}`, `{"name":"a"}`},
		{"null stays in free-form members", `{"name":"a","any":null}`, `{"name":"a","any":null}`},
		{"another case is another member", `{"name":"a","NAME":"B!","Count":-5,"inner":{"a":"x","b":1,"C":7}}`, `{"name":"a","inner":{"a":"x","b":1}}`},
		{"the last of equal members counts", `{"name":"A","name":"b","inner":{"a":"x","b":1,"c":"y"},"inner":{"a":"z","b":2}}`, `{"name":"b","inner":{"a":"z","b":2}}`},
		{"escapes", `{"name":"\u0061","text":"a\"\u00e9"}`, `{"name":"a","text":"a\"é"}`},
		{"ids are in lower case", `{"name":"a","owner":"019A7D4E-0000-7000-8000-00000000000A"}`, `{"name":"a","owner":"019a7d4e-0000-7000-8000-00000000000a"}`},
		{"a whole number may have a point", `{"name":"a","count":3.0}`, `{"name":"a","count":3}`},
		{"fractions", `{"name":"a","ratio":0.3}`, `{"name":"a","ratio":0.3}`},
		{"free-form parts keep order and digits", `{"name":"a","free":{"z":1,"a":12345678901234567890.10,"Z":{"b":[]}}}`,
			`{"name":"a","free":{"z":1,"a":12345678901234567890.10,"Z":{"b":[]}}}`},
		{"any value", `{"name":"a","any":[1,"x",null]}`, `{"name":"a","any":[1,"x",null]}`},
		{"described raw parts keep order", `{"name":"a","spec":{"zz":1,"b":1.0,"a":"x"}}`, `{"name":"a","spec":{"zz":1,"b":1.0,"a":"x"}}`},
		{"one", `{"name":"a","nodes":"*"}`, `{"name":"a","nodes":["*"]}`},
		{"many", `{"name":"a","nodes":["x","y"]}`, `{"name":"a","nodes":["x","y"]}`},
		{"space everywhere", " {\n \"name\" :\t\"a\" , \"count\" : 1 , \"labels\" : { \"k\" : \"v\" } } \r\n", `{"name":"a","count":1,"labels":{"k":"v"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := send(t, things, http.MethodPost, thingPath, tt.body)
			if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != tt.want {
				t.Errorf("bound %s: got %d %s, want %s", tt.body, w.Code, got, tt.want)
			}
		})
	}
}

func TestBodyMayBeAbsentWhereItIsNotRequired(t *testing.T) {
	t.Parallel()
	w := send(t, newThings(t), http.MethodPatch, thingPath, "")
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusOK || got != "null" {
		t.Errorf("got %d %s, want 200 null", w.Code, got)
	}
}

func TestBodyThatIsAList(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	if w := send(t, things, http.MethodPut, "/names", `["a","b"]`); w.Code != http.StatusNoContent {
		t.Errorf("got %d %s, want 204", w.Code, w.Body)
	}
	want := []detail{{`["body",1]`, "string_type", "Input should be a valid string"}}
	if diff := cmp.Diff(want, problemsOf(t, send(t, things, http.MethodPut, "/names", `["a",2]`))); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestBodyBombs checks that bodies that are made to be expensive for the server are refused,
// whatever they cost the client.
func TestBodyBombs(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct{ name, body, wantType string }{
		{"nesting", strings.Repeat("[", 500_000), "json_invalid"},
		{"nesting in a free-form part", `{"name":"a","free":` + strings.Repeat(`{"a":`, 100_000), "json_invalid"},
		{"a problem in each of very many items", `{"name":"a","inners":[` + strings.Repeat(`{},`, 300_000) + `{}]}`, "too_long"},
		{"very many labels", `{"name":"a","labels":{` + manyMembers(40_000) + `}}`, "too_long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(t, send(t, things, http.MethodPost, thingPath, tt.body))
			if len(got) != 1 || got[0].Type != tt.wantType {
				t.Errorf("got %d problems, the first %v; want one %s", len(got), got[0], tt.wantType)
			}
		})
	}
	if w := send(t, things, http.MethodPost, thingPath, `{"name":"a","free":{`+manyMembers(40_000)+`}}`); w.Code != http.StatusOK {
		t.Errorf("a large free-form part: got %d, want 200", w.Code)
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(string(rune('a'+i%26)) + strings.Repeat("x", i%7) + string(rune(0x4e00+i%20000)) + string(rune('a'+i/20000)))
		b.Write(name)
		b.WriteString(":1")
	}
	return b.String()
}

// TestRawBodies sends bodies that are not JSON to an operation that takes any body, up to a
// limit of its own.
func TestRawBodies(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	document := `{"paths":{"/hooks":{"post":{"security":[],"requestBody":{"x-body-limit":8,"content":{"*/*":{"schema":{"type":"string"}}}},"responses":{}}}}}`
	mux.Routes(load(t, document), "", nil).HandleFunc("POST /hooks", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			mux.Error(w, r, err)
			return
		}
		_, _ = w.Write(text)
	})
	for _, body := range []string{"", "{", "\xff\x00", " \t\r\n ", "12345678"} {
		for _, contentType := range []string{"application/json", "application/x-www-form-urlencoded", "none of any"} {
			if w := send(t, mux, http.MethodPost, "/hooks", body, "Content-Type", contentType); w.Code != http.StatusOK || w.Body.String() != body {
				t.Errorf("%q as %s: got %d %q", body, contentType, w.Code, w.Body)
			}
		}
	}
	if w := send(t, mux, http.MethodPost, "/hooks", "123456789"); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
