package output

import "time"

// Kinds of events.
const (
	KindServer     = "server"     // url, text
	KindRepository = "repository" // url, ref
	KindDeployment = "deployment" // deployment_id, revision_id, name
	KindStatus     = "status"     // revision_id, status, text: how long the previous status took
	KindWaiting    = "waiting"    // status, text: nothing changed
	KindThread     = "thread"     // thread_id, url
	KindRun        = "run"        // run, text: a run with that question is requested
	KindToken      = "token"      // run, run_id, text: a piece of the answer
	KindMessage    = "message"    // run, run_id, messages: the messages of one step
	KindQuestion   = "question"   // thread_id, name: the question's id, text: the question
	KindRunEnd     = "run_end"    // run, run_id, status, text
	KindState      = "state"      // thread_id, messages: the final thread
	KindDeleted    = "deleted"    // deployment_id
	KindKept       = "kept"       // text
	KindLog        = "log"        // name: which log, text: where it is, lines: its last lines
	KindUpload     = "upload"     // text: the uploaded files
	KindNote       = "note"       // text: useful information
	KindResult     = "result"     // status: succeeded or failed, text; the last event
)

// Event is a message for a person, or for a program that reads NDJSON.
type Event struct {
	Kind string    `json:"event"`
	Time time.Time `json:"time"`
	// Elapsed is the time since the command began.
	Elapsed float64 `json:"elapsed_s"`

	Text       string    `json:"text,omitempty"`
	URL        string    `json:"url,omitempty"`
	Ref        string    `json:"ref,omitempty"`
	Name       string    `json:"name,omitempty"`
	Deployment string    `json:"deployment_id,omitempty"`
	Revision   string    `json:"revision_id,omitempty"`
	Thread     string    `json:"thread_id,omitempty"`
	RunID      string    `json:"run_id,omitempty"`
	Run        int       `json:"run,omitempty"`
	Status     string    `json:"status,omitempty"`
	Messages   []Message `json:"messages,omitempty"`
	Lines      []string  `json:"lines,omitempty"`

	// Members of the result of a failed revision: the reason, the revision that serves, and
	// the next step.
	Reason  string `json:"status_reason,omitempty"`
	Message string `json:"status_message,omitempty"`
	Active  string `json:"active_revision_id,omitempty"`
	Next    string `json:"next,omitempty"`
}

// Printer gets all events, in order and from one goroutine at a time.
type Printer interface {
	Show(event Event)
	// Close ends the output and returns the first error of writing it.
	Close() error
}

// Timed returns a function that passes events to the printer, with the time elapsed since now.
func Timed(printer Printer) func(Event) {
	began := time.Now()
	return func(event Event) {
		event.Time = time.Now()
		event.Elapsed = event.Time.Sub(began).Round(time.Millisecond).Seconds()
		printer.Show(event)
	}
}
