package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
)

// tagOf reads the widget and returns its ETag.
func (s *widgets) tagOf(t *testing.T, headers ...string) string {
	t.Helper()
	w := send(t, s, "GET", "/widgets/1", "", headers...)
	tag := w.Header().Get("ETag")
	if w.Code != http.StatusOK || !strings.HasPrefix(tag, `"`) || !strings.HasSuffix(tag, `"`) {
		t.Fatalf("got %d with ETag %s", w.Code, tag)
	}
	return tag
}

// eachKind runs the test on a widget that counts its versions, and on a widget that does not.
func eachKind(t *testing.T, test func(t *testing.T, s *widgets)) {
	t.Helper()
	for _, counted := range []bool{true, false} {
		t.Run(fmt.Sprintf("counted %t", counted), func(t *testing.T) {
			t.Parallel()
			test(t, newWidgets(t, counted))
		})
	}
}

func TestAnETagStandsForARepresentation(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *widgets) {
		first := s.tagOf(t)
		if again := s.tagOf(t); again != first {
			t.Errorf("the same: got %s, then %s", first, again)
		}
		if other := s.tagOf(t, "X-Viewer", "x"); other == first {
			t.Errorf("two representations have one tag, %s", other)
		}
		patched := send(t, s, "PATCH", "/widgets/1", `{"text":"second"}`)
		if tag := patched.Header().Get("ETag"); tag == first || tag != s.tagOf(t) {
			t.Errorf("after a change: PATCH has %s, GET %s, before it was %s", tag, s.tagOf(t), first)
		}
		if created := send(t, s, "POST", "/widgets", `{"text":"third"}`); created.Code != 201 || created.Header().Get("ETag") != s.tagOf(t) {
			t.Errorf("POST: got %d with %s, GET has %s", created.Code, created.Header().Get("ETag"), s.tagOf(t))
		}
		for target, method := range map[string]string{"/widgets": "GET", "/widgets/2": "GET", "/widgets/1": "DELETE"} {
			if w := send(t, s, method, target, ""); w.Header().Get("ETag") != "" {
				t.Errorf("%s %s: it has an ETag", method, target)
			}
		}
	})
}

func TestAClientThatHasItIsToldSo(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *widgets) {
		tag := s.tagOf(t)
		for header, want := range map[string]int{
			tag: 304, "W/" + tag: 304, "*": 304, `"x", ` + tag: 304, `W/"x",,` + tag + " ": 304, ", " + tag: 304,
			`"x"`: 200, "x": 200, "": 200, strings.Trim(tag, `"`): 200, tag + "x": 200, `"*"`: 200,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				w := send(t, s, method, "/widgets/1", "", "If-None-Match", header)
				if w.Code != want || w.Header().Get("ETag") != tag || w.Header().Get("Cache-Control") != "private, no-cache" {
					t.Errorf("%s %s: got %d %v, want %d", method, header, w.Code, w.Header(), want)
				}
				if w.Code == 304 && (w.Body.Len() > 0 || w.Header().Get("Content-Type") != "") {
					t.Errorf("%s %s: a 304 with a body: %v %s", method, header, w.Header(), w.Body)
				}
			}
		}
		if w := send(t, s, "GET", "/widgets/2", "", "If-None-Match", "*"); w.Code != 404 {
			t.Errorf("what is not there: got %d, want 404", w.Code)
		}
		// The header says nothing about changes.
		if w := send(t, s, "PATCH", "/widgets/1", `{"text":"first"}`, "If-None-Match", tag); w.Code != 200 {
			t.Errorf("PATCH: got %d, want 200", w.Code)
		}
	})
}

func TestAChangeUnderACondition(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *widgets) {
		for _, method := range []string{"PATCH", "DELETE"} {
			old := s.tagOf(t)
			send(t, s, "PATCH", "/widgets/1", `{"text":"after `+method+`"}`)
			tag := s.tagOf(t)
			before := s.calls
			for header, want := range map[string]int{old: 412, "W/" + tag: 412, `"x", ` + old: 412, `"x"`: 412, "x": 422, "": 422, `"x`: 422, `"x" "y"`: 422, `"a b"`: 422} {
				w := send(t, s, method, "/widgets/1", `{"text":"no"}`, "If-Match", header)
				if w.Code != want {
					t.Errorf("%s If-Match %s: got %d %s, want %d", method, header, w.Code, w.Body, want)
				}
				if want == 422 && !strings.Contains(w.Body.String(), `["header","If-Match"]`) {
					t.Errorf("%s: the answer does not name the header: %s", header, w.Body)
				}
			}
			if s.calls != before {
				t.Errorf("%s: the handler was called", method)
			}
			for _, prefix := range []string{`"x", `, ""} {
				header := prefix + s.tagOf(t)
				if prefix == "" {
					header = "*"
				}
				if w := send(t, s, method, "/widgets/1", `{"text":"again"}`, "If-Match", header); w.Code != 200 && w.Code != 204 {
					t.Errorf("%s If-Match %s: got %d %s", method, header, w.Code, w.Body)
				}
			}
		}
		// If there is no resource, its operation returns the error; without a tag on the path,
		// the header has no meaning.
		if w := send(t, s, "DELETE", "/widgets", "", "If-Match", `"x"`); w.Code != 204 && !s.counted {
			t.Errorf("a path without tags: got %d", w.Code)
		}
	})
}

// TestAnotherRepresentationOfOneVersion reads as a caller that sees less than the writing
// caller.
func TestAnotherRepresentationOfOneVersion(t *testing.T) {
	t.Parallel()
	for counted, want := range map[bool]int{true: 200, false: 412} {
		s := newWidgets(t, counted)
		tag := s.tagOf(t, "X-Viewer", "x")
		if w := send(t, s, "PATCH", "/widgets/1", `{"text":"second"}`, "If-Match", tag); w.Code != want {
			t.Errorf("counted %t: got %d, want %d", counted, w.Code, want)
		}
	}
}

// TestATagOfAnotherResource sends tags of the same version that the widget never had: of an earlier
// widget with the same name, and made up.
func TestATagOfAnotherResource(t *testing.T) {
	t.Parallel()
	s := newWidgets(t, true)
	s.id = "earlier"
	earlier := s.tagOf(t)
	s.id = "later"
	before := s.calls
	for _, header := range []string{earlier, `"1-zzz"`, `"1"`, `"1.-zzz"`, `"1.0123abcd-zzz"`, `"x", ` + earlier} {
		for _, method := range []string{"PATCH", "DELETE"} {
			if w := send(t, s, method, "/widgets/1", `{"text":"second"}`, "If-Match", header); w.Code != 412 || s.calls != before {
				t.Errorf("%s with %s: got %d", method, header, w.Code)
			}
		}
	}
}

// TestHandlersThatKnowTheIdLearnItsVersionsOnly reads no resource before the operation.
func TestHandlersThatKnowTheIdLearnItsVersionsOnly(t *testing.T) {
	t.Parallel()
	s := newWidgets(t, true)
	s.id = "a"
	tag := s.tagOf(t)
	for id, want := range map[string][]int64{"a": {1}, "b": {}} {
		var got []int64
		s.handle = func(_ http.ResponseWriter, r *http.Request) { got = web.ExpectedVersionsOf(r.Context(), id) }
		if w := send(t, s, "POST", "/widgets", "{}", "If-Match", tag); w.Code != 200 || !cmp.Equal(got, want) {
			t.Errorf("%s: got %d with %v, want %v", id, w.Code, got, want)
		}
	}
}

// TestOneOfManyChangesWins has many clients change a widget that all of them have read.
func TestOneOfManyChangesWins(t *testing.T) {
	t.Parallel()
	s := newWidgets(t, true)
	tag := s.tagOf(t)
	var wg sync.WaitGroup
	var won, lost atomic.Int64
	for i := range 50 {
		wg.Go(func() {
			switch w := send(t, s, "PATCH", "/widgets/1", fmt.Sprintf(`{"text":"%d"}`, i), "If-Match", tag); w.Code {
			case 200:
				won.Add(1)
			case 412:
				lost.Add(1)
			default:
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 49 {
		t.Errorf("%d of 50 won, %d were refused", won.Load(), lost.Load())
	}
}

// TestHandlersLearnWhichVersionsAreExpected closes the gap between the read and the write.
func TestHandlersLearnWhichVersionsAreExpected(t *testing.T) {
	t.Parallel()
	s := newWidgets(t, true)
	tag := s.tagOf(t)
	of, _, _ := strings.Cut(strings.TrimPrefix(tag, `"1.`), "-") // the identity of the widget
	for header, want := range map[string][]int64{
		tag: {1}, `"x", W/"7.` + of + `-x", "8.` + of + `-y", "9.0123abcd-y", "9-y", ` + tag: {8, 1}, "*": nil,
	} {
		var got []int64
		s.handle = func(_ http.ResponseWriter, r *http.Request) { got = web.ExpectedVersions(r.Context()) }
		if w := send(t, s, "PATCH", "/widgets/1", "{}", "If-Match", header); w.Code != 200 || !cmp.Equal(got, want) {
			t.Errorf("%s: got %d with %v, want %v", header, w.Code, got, want)
		}
	}
}
