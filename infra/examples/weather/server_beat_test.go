package main

import (
	"net/http"
	"testing"
	"time"
)

// spoken gets each piece of an answer when it is written.
type spoken chan string

func (s spoken) Header() http.Header            { return http.Header{} }
func (s spoken) WriteHeader(int)                {}
func (s spoken) Flush()                         {}
func (s spoken) Write(text []byte) (int, error) { s <- string(text); return len(text), nil }

// TestSilenceIsFilled checks that comments come again and again while nothing is said, and that
// nothing is written after the end.
func TestSilenceIsFilled(t *testing.T) {
	t.Parallel()
	answer := make(spoken)
	_, stop := events(answer, time.Millisecond)
	for range 3 {
		if got := <-answer; got != ": heartbeat\n\n" {
			t.Errorf("got %q", got)
		}
	}
	go func() {
		stop()
		close(answer) // a write that came later would panic
	}()
	for range answer {
		// A comment that was being written when the end came.
	}
}

// TestSomethingSaidIsNoSilence checks that an event is not followed by a comment at once.
func TestSomethingSaidIsNoSilence(t *testing.T) {
	t.Parallel()
	answer := make(spoken, 2)
	emit, stop := events(answer, time.Hour)
	if err := emit("updates", 1); err != nil {
		t.Fatal(err)
	}
	stop()
	close(answer)
	if got := <-answer; got != "event: updates\ndata: 1\n\n" {
		t.Errorf("got %q", got)
	}
	if more, open := <-answer; open {
		t.Errorf("got %q, too", more)
	}
}
