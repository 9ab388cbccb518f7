package agentserver_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestIdsIncreaseAndStandOnTheLastOfAPosition lists the ids of a stream in which most events
// become several events.
func TestIdsIncreaseAndStandOnTheLastOfAPosition(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	body := with(script(say("m", "Hel"), say("m", "lo"), add("model", "m", "Hello")), "stream_mode", []any{"messages", "messages-tuple", "updates"})
	_, events := f.stream(t, thread, body)
	var got []string
	for _, e := range events {
		got = append(got, e.ID+" "+e.Name)
	}
	want := []string{
		"1 metadata", " messages", " messages/metadata", "3 messages/partial", " messages", "4 messages/partial", " updates", "5 messages/complete",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	_, next := f.stream(t, thread, with(script(say("n", "more")), "stream_mode", allModes))
	last := 6 // the position of the values at the end of the first run
	for _, e := range next {
		if e.ID == "" {
			continue
		}
		position, err := strconv.Atoi(e.ID)
		check.Must(t, err)
		if position != last+1 {
			t.Errorf("event %+v comes after id %d", e, last)
		}
		last = position
	}
}

// TestAStreamGoesOnAfterAnyOfItsIds checks that the stream continues with exactly the rest, in
// every mode and in all modes together.
func TestAStreamGoesOnAfterAnyOfItsIds(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, hi()) // so that the positions do not begin at the thread's beginning
	path, streamed := f.stream(t, thread, with(script(everything()...), "stream_mode", allModes))
	for _, query := range append([]string{""}, allModes...) {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			address := path + "/stream"
			if query != "" {
				address += "?stream_mode=" + query
			}
			all := f.follow(t, address, "")
			if query == "" && !cmp.Equal(streamed, all) {
				t.Errorf("read again (-first +again):\n%s", cmp.Diff(streamed, all))
			}
			if all[len(all)-1].ID == "" || all[0].Name != "metadata" || all[0].ID == "" {
				t.Errorf("the first and the last event are %+v, %+v", all[0], all[len(all)-1])
			}
			for _, after := range []string{"-1", "0", "1"} {
				if diff := cmp.Diff(all, f.follow(t, address, after)); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", after, diff)
				}
			}
			for i, e := range all {
				if e.ID == "" {
					continue
				}
				if diff := cmp.Diff(all[i+1:], f.follow(t, address, e.ID)); diff != "" {
					t.Errorf("after %+v (-want +got):\n%s", e, diff)
				}
			}
			if diff := cmp.Diff([]event{}, f.follow(t, address, "1000000")); diff != "" {
				t.Errorf("after an id that is yet to come (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnIDThatIsNoneIsRefused checks that an invalid id is refused before anything is sent.
func TestAnIDThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	path := f.finish(t, f.newThread(t), hi())
	for _, after := range []string{"x", "-2", "1.5", "1-2", "99999999999999999999"} {
		answer := f.send(t, "GET", f.path(path+"/stream"), nil, map[string]string{auth.HeaderKey: f.key, "Last-Event-ID": after})
		wantStatus(t, answer, http.StatusUnprocessableEntity)
		want := []any{object{
			"loc": []any{"header", "Last-Event-ID"}, "msg": "Input should be the id of an event of this run, or -1", "type": "int_parsing",
		}}
		if diff := cmp.Diff(any(want), answer.member("detail")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", after, diff)
		}
	}
}

// TestAStreamIsForThisClientOnly checks the header that tells caches and proxies not to keep
// the stream.
func TestAStreamIsForThisClientOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	answer := f.call(t, "POST", f.newThread(t)+"/runs/stream", hi())
	again := f.call(t, "GET", answer.Header.Get("Location"), nil)
	for _, r := range []response{answer, again} {
		if got := r.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		if !strings.HasSuffix(r.Header.Get("Location"), "/stream") || r.Header.Get("Location") != answer.Header.Get("Location") {
			t.Errorf("Location is %q", r.Header.Get("Location"))
		}
	}
	if diff := cmp.Diff(eventsOf(t, answer), eventsOf(t, again)); diff != "" {
		t.Errorf("events (-created +taken up again):\n%s", diff)
	}
}

// TestAStreamIsTakenUpWithWhatItWasAskedFor has clients that use only the Location of the
// stream, and clients that send their parameters once more.
func TestAStreamIsTakenUpWithWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	path, _ := f.stream(t, thread, with(script(everything()...), "stream_mode", allModes))
	own := url.Values{"stream_mode": {"updates", "custom"}, "cancel_on_disconnect": {"1"}}.Encode()
	for name, query := range map[string]string{
		"repeated": own, "as JSON": url.Values{"stream_mode": {`["updates","custom"]`}, "cancel_on_disconnect": {"1"}}.Encode(),
	} {
		first := f.call(t, "GET", path+"/stream?"+query, nil)
		all := eventsOf(t, first)
		if got := strings.Join(names(all), " "); got != "metadata custom updates" {
			t.Fatalf("%s: the stream shows %s", name, got)
		}
		location := first.Header.Get("Location")
		if want := path + "/stream?cancel_on_disconnect=true&stream_mode=updates&stream_mode=custom"; location != want {
			t.Errorf("%s: Location is %q, want %q", name, location, want)
		}
		for _, again := range []string{location, location + "&" + query} {
			answer := f.send(t, "GET", f.path(again), nil, map[string]string{auth.HeaderKey: f.key, "Last-Event-ID": all[0].ID})
			wantEvents(t, eventsOf(t, answer), all[1:]...)
			if got := answer.Header.Get("Location"); got != location {
				t.Errorf("%s: Location has become %q", name, got)
			}
		}
	}
	if got, want := f.call(t, "GET", path+"/join?cancel_on_disconnect=true", nil).Header.Get("Location"), path+"/join?cancel_on_disconnect=true"; got != want {
		t.Errorf("Location of a join is %q, want %q", got, want)
	}
	opened := func(query string) string {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		answer := f.open(ctx, t, "GET", f.path(thread+"/stream"+query), nil, map[string]string{auth.HeaderKey: f.key})
		defer answer.Body.Close()
		return answer.Header.Get("Location")
	}
	if got, want := opened("?stream_mode=lifecycle&stream_modes=lifecycle"), thread+"/stream?stream_modes=lifecycle"; got != want {
		t.Errorf("Location of the thread's stream is %q, want %q", got, want)
	}
	if got, want := opened(""), thread+"/stream"; got != want {
		t.Errorf("Location of the thread's stream is %q, want %q", got, want)
	}
}
