package web

import (
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// arrivalTime is how long a body may take to arrive.
	arrivalTime = time.Minute
	// arrivalRate is how many bytes of an upload must arrive in each second beyond arrivalTime.
	arrivalRate = 16 << 10
	// refusedTime is how long the server waits for the rest of a body after the answer was
	// decided. Most clients read the answer only after they have sent everything, so the server
	// reads on for a while; net/http bounds the bytes.
	refusedTime = 5 * time.Second
)

// arrival is the body of a request while it arrives. It guarantees that no read of the body
// waits for ever: neither the handler's reads nor the reads by which net/http looks for the end
// of a body that the handler has not read. net/http clears the deadline when it finds the end
// of the body.
type arrival struct {
	io.ReadCloser
	control *http.ResponseController
	// limit and refused are how long the body may take, before and after the answer is decided.
	limit, refused time.Duration
	start          time.Time

	// mu guards the fields below: a proxy reads the body in another goroutine than the
	// handler's.
	mu       sync.Mutex
	until    time.Time
	received int64
	// fixed says that the reader of the body sets the deadlines, or that they are final: bytes
	// that arrive do not extend them.
	fixed bool
	ended bool
}

// watchArrival returns the body with a deadline for all reads of it. A handler of a Mux may
// call a handler of another Mux.
func (m *Mux) watchArrival(control *http.ResponseController, body io.ReadCloser) *arrival {
	if a, ok := body.(*arrival); ok {
		return a
	}
	a := &arrival{ReadCloser: body, control: control, start: time.Now(), limit: m.arrival, refused: m.refused}
	a.extend()
	return a
}

// Read reads on. A body that is large may take longer than arrivalTime as long as it keeps arriving
// at arrivalRate.
func (a *arrival) Read(p []byte) (int, error) {
	a.extend()
	n, err := a.ReadCloser.Read(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received += int64(n)
	a.ended = a.ended || err == io.EOF
	return n, err
}

func (a *arrival) extend() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.fixed && !a.ended {
		a.setDeadline(a.start.Add(a.limit + time.Duration(a.received/arrivalRate)*time.Second))
	}
}

// within sets a deadline that arriving bytes do not extend.
func (a *arrival) within(limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fix(limit)
}

// fix is within for a caller that holds mu.
func (a *arrival) fix(limit time.Duration) {
	a.fixed = true
	a.setDeadline(time.Now().Add(limit))
}

// arriveWithin bounds the time that the whole body of a request may take.
func arriveWithin(r *http.Request, limit time.Duration) {
	if body := exchangeOf(r.Context()).body; body != nil {
		body.within(limit)
	}
}

// stopWaiting is called when the answer is decided: the server does not wait much longer for bytes
// that have not arrived by now.
func (a *arrival) stopWaiting() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended && time.Until(a.until) > a.refused {
		a.fix(a.refused)
	}
}

// setDeadline is called with mu held. It does nothing where requests have no connection, for
// example behind a gateway: there, the whole body is present from the start.
func (a *arrival) setDeadline(at time.Time) {
	a.until = at
	_ = a.control.SetReadDeadline(at)
}
