package agentserver

import (
	"strconv"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/record/record"
)

// outletBytes is approximately how many bytes an outlet holds: many events of one batch of the log
// may show a whole state or a whole message each.
const outletBytes = 64 << 10

// outlet hands stream events to a client while they are made, several at a time.
type outlet struct {
	send func(...web.Event) error
	// muted says that the client has the events that are made now.
	muted bool
	// held are the events that are not sent, size is the length of their data. err is the error
	// of an earlier send.
	held []web.Event
	size int
	err  error
	// encoded is how many stream events were made of the present event of the log.
	encoded int
}

// each translates events of the log, and sends what is made of them. It calls send at least once,
// even if nothing is made. The client has the events up to the position after.
func (o *outlet) each(events []run.Event, after int64, translate func(run.Event) error) error {
	defer func() { o.muted = false }()
	for _, event := range events {
		o.muted, o.encoded = event.Position <= after, 0
		if err := translate(event); err != nil {
			return err
		}
		// If one event becomes several events, the last event carries the id: a client that
		// reconnects with the id has received all of them.
		if o.encoded > 0 {
			o.name(strconv.FormatInt(event.Position, 10))
		}
		if o.release(); o.err != nil {
			return o.err
		}
	}
	return o.flush()
}

// add adds an event. The newest event is always held, because it may still get an id.
func (o *outlet) add(name string, data []byte) {
	if o.muted {
		return
	}
	o.release()
	o.held = append(o.held, web.Event{Name: name, Data: data})
	o.size += len(data)
	o.encoded++
}

// encode is add for data that is encoded only if the client does not have the event.
func (o *outlet) encode(name string, data any) {
	if !o.muted {
		o.add(name, record.Encode(data))
	}
}

// name gives the newest event an id.
func (o *outlet) name(id string) { o.held[len(o.held)-1].ID = id }

// release sends the held events if they are large.
func (o *outlet) release() {
	if o.size > outletBytes {
		_ = o.flush() // each returns the error
	}
}

func (o *outlet) flush() error {
	held := o.held
	o.held, o.size = nil, 0
	if o.err == nil {
		o.err = o.send(held...)
	}
	return o.err
}
