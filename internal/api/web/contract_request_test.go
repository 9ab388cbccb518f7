package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestParameterProblems(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct {
		query string
		want  []detail
	}{
		{"must=1&limit=x", []detail{{`["query","limit"]`, "int_parsing", "Input should be a valid integer, unable to parse string"}}},
		{"must=1&limit=", []detail{{`["query","limit"]`, "int_parsing", "Input should be a valid integer, unable to parse string"}}},
		{"must=1&limit=1.5", []detail{{`["query","limit"]`, "int_parsing", "Input should be a valid integer, unable to parse string"}}},
		{"must=1&limit=99999999999999999999", []detail{{`["query","limit"]`, "int_parsing", "Input should be a valid integer, unable to parse string"}}},
		{"must=1&limit=0", []detail{{`["query","limit"]`, "greater_than_equal", "Input should be greater than or equal to 1"}}},
		{"must=1&limit=101", []detail{{`["query","limit"]`, "less_than_equal", "Input should be less than or equal to 100"}}},
		{"must=1&ratio=x", []detail{{`["query","ratio"]`, "float_parsing", "Input should be a valid number, unable to parse string"}}},
		{"must=1&ratio=Inf", []detail{{`["query","ratio"]`, "float_parsing", "Input should be a valid number, unable to parse string"}}},
		{"must=1&ratio=2.5", []detail{{`["query","ratio"]`, "less_than", "Input should be less than 1"}}},
		{"must=1&all=yes", []detail{{`["query","all"]`, "bool_parsing", "Input should be a valid boolean, unable to parse string"}}},
		{"must=1&color=pink", []detail{{`["query","color"]`, "enum", "Input should be 'red', 'green' or 'blue'"}}},
		{"must=1&mode=red&mode=pink", []detail{{`["query","mode",1]`, "enum", "Input should be 'red', 'green' or 'blue'"}}},
		{"must=1&mode=red&mode=red&mode=red&mode=red", []detail{{`["query","mode"]`, "too_long", "List should have at most 3 items after validation, not 4"}}},
		{"must=1&mode=" + strings.Repeat(",", 1000), []detail{{`["query","mode"]`, "too_long", "List should have at most 1000 items after validation, not 1001"}}},
		{"must=1&sizes=1&sizes=x", []detail{{`["query","sizes",1]`, "int_parsing", "Input should be a valid integer, unable to parse string"}}},
		{"must=1;all=true", []detail{{`["query"]`, "query_parsing", "Input should be parameters with & between them, in which % begins two hexadecimal digits"}}},
		{"must=1&limit=100%", []detail{{`["query"]`, "query_parsing", "Input should be parameters with & between them, in which % begins two hexadecimal digits"}}},
		{"must=1&unknown=%zz", []detail{{`["query"]`, "query_parsing", "Input should be parameters with & between them, in which % begins two hexadecimal digits"}}},
		{"limit=x&color=pink", []detail{
			{`["query","color"]`, "enum", "Input should be 'red', 'green' or 'blue'"},
			{`["query","limit"]`, "int_parsing", "Input should be a valid integer, unable to parse string"},
			{`["query","must"]`, "missing", "Field required"},
		}},
	} {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(t, send(t, things, http.MethodGet, "/things?"+tt.query, ""))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeaderProblem(t *testing.T) {
	t.Parallel()
	got := problemsOf(t, send(t, newThings(t), http.MethodGet, "/things?must=1", "", "X-Trace", "12345"))
	want := []detail{{`["header","X-Trace"]`, "string_too_long", "String should have at most 4 characters"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestQueryIsNormalized checks that queries are passed on in the one form that the generated
// binder reads as the client meant it.
func TestQueryIsNormalized(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for query, want := range map[string]url.Values{
		"must=1&limit=5&unknown=x":         {"must": {"1"}, "limit": {"5"}, "unknown": {"x"}},
		"must=1&limit=0&limit=7":           {"must": {"1"}, "limit": {"7"}},
		"must=1&mode=red&mode=blue":        {"must": {"1"}, "mode": {"red", "blue"}},
		`must=1&mode=["red","green"]`:      {"must": {"1"}, "mode": {"red", "green"}},
		"must=1&mode=":                     {"must": {"1"}},
		"must=1&mode=&mode=blue":           {"must": {"1"}, "mode": {"blue"}},
		"must=1&all=0":                     {"must": {"1"}, "all": {"0"}},
		"must=1&all=False&ratio=0.5":       {"must": {"1"}, "all": {"False"}, "ratio": {"0.5"}},
		"must=a%26b&mode=%5B%22red%22%5D":  {"must": {"a&b"}, "mode": {"red"}},
		"must=1&mode=red,%20blue&tags=a,b": {"must": {"1"}, "mode": {"red", "blue"}, "tags": {"a,b"}},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			w := send(t, things, http.MethodGet, "/things?"+query, "")
			var got url.Values
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("body %s: %v", w.Body, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPathIDsAreLowered(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	mux.Routes(load(t, thingsDocument), "", nil).HandleFunc("PATCH /things/{thing_id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.PathValue("thing_id"))
	})
	w := send(t, mux, http.MethodPatch, "/things/019A7D4E-0000-7000-8000-00000000000A", "")
	if got, want := w.Body.String(), "019a7d4e-0000-7000-8000-00000000000a"; got != want {
		t.Errorf("thing_id: got %s, want %s", got, want)
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for contentType, want := range map[string]int{
		"application/json":                  http.StatusOK,
		"application/json; charset=utf-8":   http.StatusOK,
		"Application/JSON":                  http.StatusOK,
		"application/merge-patch+json":      http.StatusOK,
		"":                                  http.StatusOK,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
		"text/plain":                        http.StatusUnsupportedMediaType,
		"multipart/form-data; boundary=x":   http.StatusUnsupportedMediaType,
		"json":                              http.StatusUnsupportedMediaType,
		";;":                                http.StatusUnsupportedMediaType,
	} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			w := send(t, things, http.MethodPost, thingPath, `{"name":"a"}`, "Content-Type", contentType)
			if w.Code != want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, want)
			}
		})
	}
}

// TestPlainTextIsJSON sends what a proxy of a chat application sends, which names no media type for
// the text that it passes on. A page of another origin cannot send such requests.
func TestPlainTextIsJSON(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	told := newThingsOf(t, thingsDocument+"x-plain-text: true\n")
	for _, c := range []struct {
		header, value string
		read          bool
	}{
		{"X-Api-Key", "key", true},
		{"X-Api-Key", "", true}, // the key of a proxy that has none
		{"Authorization", "Bearer token", true},
		{"Authorization", "bearer token", true},
		{"Authorization", "Basic dTpw", false},
		{"Authorization", "", false},
		{"Cookie", "X-Api-Key=key; Authorization=Bearer token", false},
	} {
		for name, want := range map[string]bool{"text/plain;charset=UTF-8": c.read, "application/x-www-form-urlencoded": false} {
			w := send(t, told, http.MethodPost, thingPath, `{"name":"a"}`, "Content-Type", name, c.header, c.value)
			if got := w.Code == http.StatusOK; got != want || !want && w.Code != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %s: %s: got %d %s", name, c.header, c.value, w.Code, w.Body)
			}
			if w := send(t, things, http.MethodPost, thingPath, `{"name":"a"}`, "Content-Type", name, c.header, c.value); w.Code != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %s: %s, and another contract: got %d %s", name, c.header, c.value, w.Code, w.Body)
			}
		}
	}
}

// TestTooLargeIsReadable sends the whole over-long body before it reads the answer, as most
// clients do.
func TestTooLargeIsReadable(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newThings(t))
	t.Cleanup(server.Close)
	large := strings.Repeat(" ", 3*bodyLimit)
	for name, head := range map[string]string{
		"with a length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(large), large),
		"in chunks":     fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(large), large),
		// The server never gives permission to send, so no body follows.
		"after asking": fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(large)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			check.Must(t, err)
			defer func() { _ = conn.Close() }()
			if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", thingPath, head); err != nil {
				t.Fatalf("send: %v", err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("read response: %v", err)
			}
			var answer struct{ Detail string }
			if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
				t.Fatalf("read body: %v", err)
			}
			if want := "The body is larger than 1048576 bytes."; response.StatusCode != http.StatusRequestEntityTooLarge || answer.Detail != want {
				t.Errorf("got %d %q, want 413 %q", response.StatusCode, answer.Detail, want)
			}
		})
	}
}

func TestBodyAtTheLimit(t *testing.T) {
	t.Parallel()
	const text = `{"name":"a"}`
	fits := text + strings.Repeat(" ", bodyLimit-len(text))
	if w := send(t, newThings(t), http.MethodPost, thingPath, fits); w.Code != http.StatusOK {
		t.Errorf("a body of the limit: got %d, want 200", w.Code)
	}
	if w := send(t, newThings(t), http.MethodPost, thingPath, fits+" "); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over the limit: got %d, want 413", w.Code)
	}
}

func TestBodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newThings(t))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	check.Must(t, err)
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnot a length\r\n", thingPath); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read response: %v", err)
	}
	if response.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("got %d, want 422", response.StatusCode)
	}
}
