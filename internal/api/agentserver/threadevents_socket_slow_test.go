package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestASocketDuringASlowCommand checks that the server answers pings while a command waits for
// the agent, and that the commands behind it wait for it.
func TestASocketDuringASlowCommand(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	f.key = "waits"
	s := f.talk(t, f.newThread(t))
	begun, release := make(chan struct{}, 10), make(chan struct{})
	g.delay(func() {
		begun <- struct{}{}
		<-release
	})
	defer close(release)
	defer g.delay(nil)
	const commands = 3
	send := func(id int) { s.send(t, fmt.Sprintf(`{"id":%d,"method":"agent.getTree","params":{}}`, id)) }
	send(0)
	<-begun
	answered := make(chan int, commands)
	go func() { // a client gets the answer to its ping while it reads
		defer close(answered)
		for range commands {
			var answer struct{ ID int }
			_, text, err := s.Read(t.Context())
			if err = errors.Join(err, json.Unmarshal(text, &answer)); err != nil {
				t.Errorf("an answer is %s: %v", text, err)
				return
			}
			answered <- answer.ID
		}
	}()
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check.Must(t, s.Ping(patience))
	for id := 1; id < commands; id++ {
		send(id)
	}
	for id := range commands {
		if len(begun) > 0 {
			t.Fatalf("a command has begun before command %d is answered", id)
		}
		release <- struct{}{}
		if got, ok := <-answered; !ok || got != id {
			t.Fatalf("got the answer to command %d, not to command %d", got, id)
		}
		if id+1 < commands {
			<-begun
		}
	}
}

// TestACommandOutlivesItsClient checks that a command has its effect if its client leaves before
// the answer.
func TestACommandOutlivesItsClient(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	f.key = "waits"
	at := f.newThread(t)
	s, other := f.talk(t, at), f.talk(t, at)
	other.does(t, "subscription.subscribe", object{"channels": []string{"lifecycle"}})
	begun, release := make(chan struct{}), make(chan struct{})
	g.delay(sync.OnceFunc(func() {
		close(begun)
		<-release
	}))
	text, err := json.Marshal(object{"id": 1, "method": "run.start", "params": script(add("model", "m1", "Hello"))})
	check.Must(t, err)
	s.send(t, string(text))
	<-begun
	check.Must(t, s.Close(websocket.StatusNormalClosure, "")) // returns when the server knows
	g.delay(nil)
	close(release)
	wantLines(t, "the lifecycle", lifecycles(other.runs(t, 1)), "running", "completed")
}
