package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// logChunk is the number of lines that are examined at a time.
	logChunk = 1000
	// searchLimit is how long a request looks for lines unless SearchLimit is set.
	searchLimit = 5 * time.Second
)

// Logs reads and keeps the output of the deployments' revisions. No reader sees a secret of
// the deployment: its secrets are hidden before anything is compared with a line, so that a
// search does not find them either.
type Logs struct {
	Deployments *Store
	Reader      revisionlog.Reader
	// Appender takes the lines that listeners hand in.
	Appender revisionlog.Appender
	Now      clock.Clock
	// Drain is how long the agent of a replaced or deleted revision may go on, where the reader
	// does not know when the agent ends.
	Drain time.Duration
	// SearchLimit is how long a request looks for lines that match its filter, before it
	// answers with the lines that it has found (5 s).
	SearchLimit time.Duration
}

// LogFilter says which lines are wanted; a zero member matches all lines.
type LogFilter struct {
	// Query is a part of the message; case does not matter.
	Query string
	// Level is the least serious level.
	Level revisionlog.Level
	// Run is the id of a run; the message must contain it.
	Run string
}

func (f LogFilter) suits(line revisionlog.Line) bool {
	return line.Level.Reaches(f.Level) && strings.Contains(line.Message, f.Run) &&
		(f.Query == "" || strings.Contains(strings.ToLower(line.Message), strings.ToLower(f.Query)))
}

// all reports whether the filter matches all lines without a look at their text.
func (f LogFilter) all() bool { return f.Query == "" && f.Level == "" && f.Run == "" }

// Read returns a page of a revision's log, with the lines that a query and a filter let through. A
// page that has a next page may have fewer lines than its limit, or no lines.
func (l *Logs) Read(ctx context.Context, ref revision.Ref, kind revisionlog.Kind, filter LogFilter, query revisionlog.Query) (record.Page[revisionlog.Line], error) {
	d, r, err := l.Deployments.GetRevision(ctx, ref)
	if err != nil {
		return record.Page[revisionlog.Line]{}, err
	}
	return l.read(ctx, d, r, kind, filter, query)
}

// read is Read for a revision that was just read.
func (l *Logs) read(ctx context.Context, d Deployment, r revision.Revision, kind revisionlog.Kind, filter LogFilter, query revisionlog.Query) (lines record.Page[revisionlog.Line], err error) {
	hidden, err := l.Deployments.hidden(ctx, d, r)
	if err != nil {
		return lines, err
	}
	limit := query.Limit
	if !filter.all() {
		query.Limit = logChunk
	}
	for end := time.Now().Add(cmp.Or(l.SearchLimit, searchLimit)); ; {
		page, err := l.page(ctx, revisionlog.Log{Revision: r.Revision, Kind: kind}, query)
		if err != nil {
			return record.Page[revisionlog.Line]{}, err
		}
		for i, line := range page.Lines {
			if line.Message = hidden.Replace(line.Message); !filter.suits(line) {
				continue
			}
			if lines.Items = append(lines.Items, line); len(lines.Items) == limit {
				if page.More || i+1 < len(page.Lines) {
					lines.Cursor = line.ID
				}
				return lines, nil
			}
		}
		if !page.More {
			return lines, nil
		}
		if query.After = page.Next; time.Now().After(end) {
			lines.Cursor = page.Next
			return lines, nil
		}
	}
}

// page reads lines, and returns a fault for a position that is not valid.
func (l *Logs) page(ctx context.Context, log revisionlog.Log, query revisionlog.Query) (revisionlog.Page, error) {
	page, err := l.Reader.Read(ctx, log, query)
	if errors.Is(err, revisionlog.ErrPosition) {
		return page, fault.New(fault.Invalid, "%q is not a position in this log: send a position that a page or a line of the log has given.", query.After)
	}
	return page, err
}

// Follow passes on the lines of a revision's log as they come, beginning after the line After,
// until no more lines will come. It returns the revision as it is then.
func (l *Logs) Follow(ctx context.Context, ref revision.Ref, kind revisionlog.Kind, filter LogFilter, after string, send func([]revisionlog.Line) error) (revision.Revision, error) {
	log := revisionlog.Log{Revision: ref.Revision, Kind: kind}
	// A change of the deployment skips queued revisions.
	lines, statuses, passed := l.Reader.Watch(log), l.Deployments.Watch(ref), l.Deployments.table.Watch(RefOf(ref).Key())
	defer lines.Stop()
	defer statuses.Stop()
	defer passed.Stop()
	f := follower{Logs: l, log: log, filter: filter, after: after, send: send}
	for changed := true; ; {
		if changed {
			if err := f.look(ctx, ref); err != nil {
				return revision.Revision{}, err
			}
		}
		late, err := f.ending() <= 0, f.drain(ctx)
		busy := errors.Is(err, revisionlog.ErrBusy) // the watcher knows, and wakes later
		if !busy && (err != nil || late && f.silent()) {
			return f.revision, err
		}
		var end <-chan time.Time
		if !busy && f.silent() {
			end = time.After(f.ending())
		}
		select {
		case <-end:
			changed = false
		case <-lines.C():
			changed = false
		case <-statuses.C():
			changed = true
		case <-passed.C():
			changed = true
		case <-ctx.Done():
			return revision.Revision{}, context.Cause(ctx)
		}
	}
}

// follower is a reader's position in a log.
type follower struct {
	*Logs
	log    revisionlog.Log
	filter LogFilter
	after  string
	send   func([]revisionlog.Line) error

	deployment Deployment
	revision   revision.Revision
	hidden     *revisionlog.Secrets
	// live is set if the program still prints, or may print later. open is set if a program that
	// may not print later still prints, as callers may finish with it.
	live, open bool
}

// look reads the state of the revision. If the revision is erased while it is followed, its
// last state stays, and it prints no more.
func (f *follower) look(ctx context.Context, ref revision.Ref) error {
	d, r, err := f.Deployments.GetRevision(ctx, ref)
	if fault.Is(err, fault.NotFound) && f.hidden != nil {
		f.live = false
		return nil
	}
	if err != nil {
		return err
	}
	f.deployment, f.revision, f.live = d, r, prints(d, r, f.log.Kind)
	if f.hidden == nil {
		return f.hide(ctx)
	}
	return nil
}

// hide reads the values that no reader may see.
func (f *follower) hide(ctx context.Context) error {
	hidden, err := f.Deployments.hidden(ctx, f.deployment, f.revision)
	if err == nil {
		f.hidden = &hidden
	}
	return err
}

// prints reports whether a log of a revision may still grow.
func prints(d Deployment, r revision.Revision, kind revisionlog.Kind) bool {
	built := r.Status == revision.AwaitingDeploy || r.Status == revision.Deploying
	switch {
	case kind == revisionlog.Build:
		return !r.Status.Terminal() && !built
	case r.Status == revision.Deployed:
		return d.Status != AwaitingDelete && (d.Active == r.Revision || d.Retiring == r.Revision)
	default:
		return !r.Status.Terminal()
	}
}

// silent reports whether the program prints no more. Its last lines may still come.
func (f *follower) silent() bool { return !f.live && !f.open }

// ending is how long it takes until the last line of a program that prints no more is shown.
func (f *follower) ending() time.Duration {
	end := f.revision.Updated
	if f.log.Kind == revisionlog.Deploy && f.revision.Status == revision.Deployed {
		if f.deployment.Status == AwaitingDelete && f.deployment.Updated.After(end) {
			end = f.deployment.Updated
		}
		end = end.Add(f.Drain)
	}
	return end.Add(f.Reader.MaxDelay()).Sub(f.Now())
}

// drain sends the available lines. A line waits if other lines may still come before it.
func (f *follower) drain(ctx context.Context) error {
	query := revisionlog.Query{After: f.after, Limit: logChunk}
	if lag := f.Reader.MaxDelay(); lag > 0 {
		query.To = f.Now().Add(-lag)
	}
	for {
		page, err := f.page(ctx, f.log, query)
		if err != nil {
			return err
		}
		f.open = page.Open
		// The values of secrets change while the agent prints.
		if len(page.Lines) > 0 && len(f.revision.SecretReferences) > 0 {
			if err := f.hide(ctx); err != nil {
				return err
			}
		}
		var lines []revisionlog.Line
		for _, line := range page.Lines {
			if line.Message = f.hidden.Replace(line.Message); f.filter.suits(line) {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			if err := f.send(lines); err != nil {
				return err
			}
		}
		if f.after = page.Next; !page.More {
			return nil
		}
		query.After = page.Next
	}
}

// LoggedRevision returns the revision whose log is meant where only a deployment is named: the
// newest revision for builds; for agents the revision that serves, or the newest revision as
// long as no revision serves.
func (l *Logs) LoggedRevision(ctx context.Context, ref Ref, kind revisionlog.Kind) (revision.Ref, error) {
	d, err := l.Deployments.Head(ctx, ref)
	if err != nil {
		return revision.Ref{}, fmt.Errorf("find the revision: %w", err)
	}
	if kind == revisionlog.Deploy && d.Active != "" {
		return d.Revision(d.Active), nil
	}
	if d.Latest == "" {
		return revision.Ref{}, fault.New(fault.NotFound, "Deployment ID %s has no revision yet.", ref.Deployment)
	}
	return d.Revision(d.Latest), nil
}

// Append adds the output of an agent at a listener to the log of its revision, without the
// values that no log may contain. Output that the listener may not hand in is refused; output
// from a deployment that is being deleted is not kept any more.
func (l *Logs) Append(ctx context.Context, session listener.Session, output listener.Output) error {
	token, err := l.Deployments.cfg.Listeners.Admit(ctx, session, output)
	if err != nil {
		return err
	}
	d, r, err := l.Deployments.GetRevision(ctx, revision.Ref{Workspace: session.Workspace, Deployment: output.Deployment, Revision: output.Revision})
	if err != nil {
		return err
	}
	if d.Status == AwaitingDelete {
		return fault.New(fault.Conflict, "Deployment ID %s is being deleted; its output is not kept.", d.Deployment)
	}
	hidden, err := l.Deployments.hidden(ctx, d, r, token)
	if err != nil {
		return err
	}
	lines := make([]string, len(output.Lines))
	for i, line := range output.Lines {
		lines[i] = hidden.Replace(line)
	}
	return l.Appender.Append(ctx, revisionlog.Log{Revision: r.Revision, Kind: revisionlog.Deploy}, lines)
}

// Report takes a listener's report, without the values that no log may contain: the message may
// hold the agent's last output, and it goes into revisions, events and webhooks.
func (s *Store) Report(ctx context.Context, session listener.Session, report listener.Report) error {
	if report.Message != "" {
		var err error
		if report.Message, err = s.withoutSecrets(ctx, session, report); err != nil {
			return err
		}
	}
	return s.cfg.Listeners.Report(ctx, session, report)
}

// withoutSecrets is the message of a report, to be kept. Without its revision it is not known
// what the message must not show.
func (s *Store) withoutSecrets(ctx context.Context, session listener.Session, report listener.Report) (string, error) {
	d, r, err := s.GetRevision(ctx, revision.Ref{Workspace: session.Workspace, Deployment: report.Deployment, Revision: report.Revision})
	if fault.Is(err, fault.NotFound) {
		return "The message is not kept, as the revision is gone.", nil
	}
	if err != nil {
		return "", err
	}
	token, err := s.cfg.Listeners.Token(ctx, r.Revision)
	if err != nil {
		return "", err
	}
	hidden, err := s.hidden(ctx, d, r, token)
	if err != nil {
		return "", err
	}
	return hidden.Replace(report.Message), nil
}

// hidden returns the values that no reader may see: the revision's secrets, also the earlier
// values of its references, the credentials of its repository, and the values in more.
func (s *Store) hidden(ctx context.Context, d Deployment, r revision.Revision, more ...string) (revisionlog.Secrets, error) {
	values, err := s.everReferred(ctx, d, r)
	if err != nil {
		return revisionlog.Secrets{}, err
	}
	secrets, err := s.Secrets(ctx, RefOf(r.Ref), r.Secrets)
	if err != nil {
		return revisionlog.Secrets{}, err
	}
	values = append(values, more...)
	for _, secret := range secrets {
		values = append(values, secret.Value)
	}
	if len(r.Credentials) > 0 {
		credentials, err := s.Open(ctx, RefOf(r.Ref), r.Credentials)
		if err != nil {
			return revisionlog.Secrets{}, err
		}
		_, password, _ := strings.Cut(string(credentials), ":")
		values = append(values, string(credentials), password)
	}
	return revisionlog.NewSecrets(values), nil
}
