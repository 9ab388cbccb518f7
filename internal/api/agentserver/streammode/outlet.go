package streammode

import (
	"strconv"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/record/record"
)

// OutletBytes is approximately how many bytes an outlet holds: many events of one batch of the log
// may show a whole state or a whole message each.
const OutletBytes = 64 << 10

// Outlet hands stream events to a client while they are made, several at a time.
type Outlet struct {
	Send func(...web.Event) error
	// Muted says that the client has the events that are made now.
	Muted bool
	// held are the events that are not sent, size is the length of their data. err is the error
	// of an earlier send.
	held []web.Event
	size int
	err  error
	// encoded is how many stream events were made of the present event of the log.
	encoded int
}

// Each translates events of the log, and sends what is made of them. It calls Send at least once,
// even if nothing is made. The client has the events up to the position after.
func (o *Outlet) Each(events []run.Event, after int64, translate func(run.Event) error) error {
	defer func() { o.Muted = false }()
	for _, event := range events {
		o.Muted, o.encoded = event.Position <= after, 0
		if err := translate(event); err != nil {
			return err
		}
		// If one event becomes several events, the last event carries the id: a client that
		// reconnects with the id has received all of them.
		if o.encoded > 0 {
			o.Name(strconv.FormatInt(event.Position, 10))
		}
		if o.release(); o.err != nil {
			return o.err
		}
	}
	return o.Flush()
}

// Add adds an event. The newest event is always held, because it may still get an id.
func (o *Outlet) Add(name string, data []byte) {
	if o.Muted {
		return
	}
	o.release()
	o.held = append(o.held, web.Event{Name: name, Data: data})
	o.size += len(data)
	o.encoded++
}

// Encode is Add for data that is encoded only if the client does not have the event.
func (o *Outlet) Encode(name string, data any) {
	if !o.Muted {
		o.Add(name, record.Encode(data))
	}
}

// Name gives the newest event an id.
func (o *Outlet) Name(id string) { o.held[len(o.held)-1].ID = id }

// release sends the held events if they are large.
func (o *Outlet) release() {
	if o.size > OutletBytes {
		_ = o.Flush() // Each returns the error
	}
}

// Flush sends the held events.
func (o *Outlet) Flush() error {
	held := o.held
	o.held, o.size = nil, 0
	if o.err == nil {
		o.err = o.Send(held...)
	}
	return o.err
}
