package revisionlog

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Kind distinguishes the two logs of a revision.
type Kind string

const (
	// Build is the output of the build.
	Build Kind = "build"
	// Deploy is the output of the running agent.
	Deploy Kind = "deploy"
)

// Log names a log.
type Log struct {
	Revision string
	Kind     Kind
}

// Line is one line of a log.
type Line struct {
	// ID names the line in its log. Its format is private to the reader.
	ID        string
	Timestamp time.Time
	Level     Level
	Message   string
}

// Query selects lines of a log.
type Query struct {
	// From and To bound the times, both inclusive. A zero time is no bound.
	From, To time.Time
	// Backward asks for the newest lines first.
	Backward bool
	// After is the ID of the line after which the page begins, in the order of the query. "" begins
	// with the first line.
	After string
	// Limit is the largest number of lines to return.
	Limit int
}

// Page is a part of a log.
type Page struct {
	Lines []Line
	// Next is the After of the next page. It is also set when no line follows yet.
	Next string
	// More reports whether lines may follow. A page without lines can still have More.
	More bool
	// Open reports whether a program still writes the log, if the reader can know that. When
	// the program ends, the watchers of the log wake.
	Open bool
}

// Reader reads logs. All methods may be called concurrently.
type Reader interface {
	// Read returns a page of a log. A log that does not exist is empty. Read returns ErrPosition
	// for an After that the reader never returned, and ErrBusy if the log takes no more readers
	// at the moment.
	Read(ctx context.Context, log Log, query Query) (Page, error)
	// Watch returns a watcher that wakes when the log may have new lines.
	Watch(log Log) Watcher
	// MaxDelay is how long after its printing a line may appear. The line may then appear behind
	// lines with a later time.
	MaxDelay() time.Duration
}

// Appender adds lines that were printed where no writer of the log runs. All methods may be called
// concurrently.
type Appender interface {
	// Append adds lines to the end of a log. All lines get the time of the call, so the times of a
	// log ascend even if the clock of the printing machine is wrong.
	Append(ctx context.Context, log Log, lines []string) error
}

// Watcher wakes a reader that waits.
type Watcher interface {
	// C delivers wake-ups. Several wake-ups may be merged into one.
	C() <-chan struct{}
	// Stop ends the watch.
	Stop()
}

// ErrBusy says that the log takes no more readers at the moment. Reading again later helps.
var ErrBusy = fault.New(fault.Unavailable, "The log is busy. Try again later.")

// ErrPosition says that the After of a query is not a position in the log.
var ErrPosition = errors.New("there is no such position in the log")
