package revisionlog

import (
	"context"
	"errors"
	"time"
)

// Kind tells the two logs of a revision apart.
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
	// ID names the line in its log; what it looks like is the reader's business.
	ID        string
	Timestamp time.Time
	Level     Level
	Message   string
}

// Query says which lines of a log are wanted.
type Query struct {
	// From and To bound the times, both included; zero is no bound.
	From, To time.Time
	// Backward asks for the newest lines first.
	Backward bool
	// After is the ID of the line to go on behind, in the order that is asked for; "" begins at the beginning of it.
	After string
	// Limit is how many lines to return at most.
	Limit int
}

// Page is a part of a log.
type Page struct {
	Lines []Line
	// Next is the After of the page that follows, also when there is nothing there yet.
	Next string
	// More tells that there is something there. A page may have no lines and More all the same.
	More bool
}

// Reader reads logs. All methods may be called concurrently.
type Reader interface {
	// Read returns a page of a log; one that does not exist is empty. An After that the reader never gave out is an ErrPosition.
	Read(ctx context.Context, log Log, query Query) (Page, error)
	// Watch wakes when there may be something new in the log.
	Watch(log Log) Watcher
	// Lag is how long after they were printed lines may appear, and that behind lines of a later time.
	Lag() time.Duration
}

// Appender adds to logs what was printed where no writer of the log is. All methods may be called concurrently.
type Appender interface {
	// Append adds lines to the end of a log, all with the time at which they are added, so that the times of a log ascend whatever the clock says where they were printed.
	Append(ctx context.Context, log Log, lines []string) error
}

// Watcher wakes somebody who waits.
type Watcher interface {
	// C delivers wake-ups, of which several may become one.
	C() <-chan struct{}
	// Stop ends the watch.
	Stop()
}

// ErrPosition says that the After of a query is no position in the log.
var ErrPosition = errors.New("there is no such position in the log")
