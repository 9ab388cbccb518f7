package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

const (
	// reconnectPause is how long a follower waits before it connects again, reconnectLimit is
	// how long it continues to try without an answer.
	reconnectPause = 500 * time.Millisecond
	reconnectLimit = 2 * time.Minute
)

// logReader prints one log.
type logReader struct {
	api            *api
	kind           string
	filter         url.Values
	stdout, stderr io.Writer
	json           bool
	// plain removes control characters from lines, because agents may print anything.
	plain bool

	// revision is the address of the revision, last is the id of the last printed line.
	revision, last string
	// answered is the time of the server's last answer.
	answered time.Time
}

// logLine is a line in the form of the interface.
type logLine struct {
	ID        string    `json:"id"`
	Timestamp time.Time `json:"timestamp"`
	Level     string    `json:"level"`
	Message   string    `json:"message"`
}

// find chooses the revision: the named revision, or the revision whose log is shown for the
// deployment.
func (l *logReader) find(ctx context.Context, deployment, revision string) error {
	d, err := l.api.deployment(ctx, deployment)
	if err != nil {
		return err
	}
	if revision == "" && l.kind == "deploy" {
		revision = d.Active
	}
	revision = cmp.Or(revision, d.Latest)
	if revision == "" {
		return fmt.Errorf("deployment %s has no revision", deployment)
	}
	l.revision = d.revision(revision)
	return nil
}

// print prints the existing lines and, if follow is set, new lines.
func (l *logReader) print(ctx context.Context, follow bool) error {
	read := l.read
	if follow {
		read = l.follow
	}
	if err := read(ctx); err != nil {
		return err
	}
	if !l.json {
		return l.sayNothing()
	}
	var revision struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	if err := l.api.Call(ctx, http.MethodGet, l.revision, nil, &revision); err != nil {
		return err
	}
	return l.event("result", time.Now(), map[string]any{"revision_id": revision.ID, "status": revision.Status})
}

// sayNothing says on stderr that no line was printed, so that a user does not take an agent without
// output for a command that failed.
func (l *logReader) sayNothing() error {
	if l.last != "" {
		return nil
	}
	_, err := fmt.Fprintln(l.stderr, "there are no such lines")
	return err
}

// read prints the existing lines, page by page.
func (l *logReader) read(ctx context.Context) error {
	for offset := ""; ; {
		var page struct {
			Logs []logLine `json:"logs"`
			Next string    `json:"next_offset"`
		}
		query := maps.Clone(l.filter)
		query.Set("limit", "1000")
		if offset != "" {
			query.Set("offset", offset)
		}
		if err := l.api.Call(ctx, http.MethodGet, l.revision+"/logs?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		for _, line := range page.Logs {
			if err := l.line(line); err != nil {
				return err
			}
		}
		if offset = page.Next; offset == "" {
			return nil
		}
	}
}

// follow prints existing and new lines until there can be no more lines. After a broken
// connection it connects again and continues after the last printed line.
func (l *logReader) follow(ctx context.Context) error {
	for {
		over, err := l.stream(ctx)
		switch {
		case over || ctx.Err() != nil:
			return err
		case l.answered.IsZero() || !isPassing(err) || time.Since(l.answered) > reconnectLimit:
			return err
		}
		fmt.Fprintf(l.stderr, "the connection is lost (%v); connecting again\n", err)
		if !clock.Sleep(ctx, reconnectPause) {
			return context.Cause(ctx)
		}
	}
}

// lasting are the statuses above 500 that another try does not change.
var lasting = []int{http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusInsufficientStorage}

// isPassing reports whether an error is temporary, so that another try may succeed.
func isPassing(err error) bool {
	if answer, ok := errors.AsType[*client.APIError](err); ok {
		return answer.Status >= http.StatusInternalServerError && !slices.Contains(lasting, answer.Status) || answer.Status == http.StatusTooManyRequests
	}
	_, own := errors.AsType[*writeError](err)
	return !own
}

// writeError says that the output can no longer be written.
type writeError struct{ error }

// stream prints one answer of the server, and reports whether it was the last answer.
func (l *logReader) stream(ctx context.Context) (over bool, err error) {
	stream, err := l.api.Stream(ctx, http.MethodGet, l.revision+"/logs?"+l.filter.Encode(), nil, "Last-Event-ID", l.last)
	if err != nil {
		return false, err
	}
	defer stream.Close()
	for {
		event, err := stream.Next(ctx)
		l.answered = time.Now() // up to the end of a silent stream, heartbeats were the answers
		switch {
		case err != nil:
			return false, err
		case event.Name == "end":
			return true, nil
		case event.Name != "log":
			continue
		}
		var line logLine
		if err := json.Unmarshal(event.Data, &line); err != nil {
			return false, fmt.Errorf("decode line %s: %w", event.ID, err)
		}
		if err := l.line(line); err != nil {
			return true, err
		}
	}
}

func (l *logReader) line(line logLine) error {
	l.last = line.ID
	if l.json {
		return l.event("log", line.Timestamp, map[string]any{"id": line.ID, "level": line.Level, "message": line.Message})
	}
	message := line.Message
	if l.plain {
		message = output.Plain(message)
	}
	return l.write([]byte(message + "\n"))
}

// event prints an event as one line of JSON.
func (l *logReader) event(name string, at time.Time, members map[string]any) error {
	members["event"], members["time"] = name, at.UTC().Format(time.RFC3339Nano)
	text, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return l.write(append(text, '\n'))
}

func (l *logReader) write(text []byte) error {
	if _, err := l.stdout.Write(text); err != nil {
		return &writeError{fmt.Errorf("print: %w", err)}
	}
	return nil
}
