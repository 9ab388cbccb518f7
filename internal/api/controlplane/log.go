package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// defaultLogLimit and defaultLogPage are how many lines the two lists return if the request
	// names no number.
	defaultLogLimit = 50
	defaultLogPage  = 20
	// eventLog and eventEnd are the events of a log that is streamed.
	eventLog = "log"
	eventEnd = "end"
)

// ListRevisionLogs returns a page of the output of a revision's build or agent, or streams it
// from the beginning or from the place where the client stopped.
func (s server) ListRevisionLogs(ctx context.Context, request ListRevisionLogsRequestObject) (ListRevisionLogsResponseObject, error) {
	p := request.Params
	filter := logFilter(p.Query, p.Level, p.RunID)
	query := revisionlog.Query{Backward: value(p.Order) == Desc, After: value(p.Offset), Limit: optional.Or(p.Limit, defaultLogLimit)}
	if err := logTimes(&query, "query", p.StartTime, p.EndTime); err != nil {
		return nil, err
	}
	answer := logAnswer{
		server: s, ctx: ctx, at: ref(ctx, request.DeploymentID).Revision(request.RevisionID), kind: revisionlog.Kind(p.Type), filter: filter, stream: wantsStream(ctx),
	}
	if answer.stream {
		answer.after = cmp.Or(value(p.LastEventID), query.After)
		// An error in the request becomes visible before the answer begins.
		filter, query = deployment.LogFilter{}, revisionlog.Query{After: answer.after, Limit: 1}
	}
	var err error
	answer.page, err = s.Logs.Read(ctx, answer.at, answer.kind, filter, query)
	return answer, err
}

// logKinds are the interface's other words for the kinds.
var logKinds = map[LogType]revisionlog.Kind{BUILD: revisionlog.Build, DEPLOY: revisionlog.Deploy}

// ListDeploymentLogs returns a page of the output of a build or an agent of a deployment, under
// other names.
func (s server) ListDeploymentLogs(ctx context.Context, request ListDeploymentLogsRequestObject) (ListDeploymentLogsResponseObject, error) {
	p := request.Params
	kind := logKinds[optional.Or(p.LogType, DEPLOY)]
	at := ref(ctx, p.DeploymentID).Revision(value(p.RevisionID))
	if at.Revision == "" {
		var err error
		if at, err = s.Logs.LoggedRevision(ctx, ref(ctx, p.DeploymentID), kind); err != nil {
			return nil, err
		}
	}
	query := revisionlog.Query{Backward: value(p.SortOrder) != Asc, After: value(p.Cursor), Limit: optional.Or(p.PageSize, defaultLogPage)}
	page, err := s.Logs.Read(ctx, at, kind, logFilter(p.Query, p.Level, p.RunID), query)
	return ListDeploymentLogs200JSONResponse{Items: web.ShowAll(page.Items, showLine), NextCursor: optional.Of(page.Cursor)}, err
}

func logFilter(query *string, level *LogLevel, run *string) deployment.LogFilter {
	return deployment.LogFilter{Query: value(query), Level: revisionlog.Level(value(level)), Run: value(run)}
}

// logTimes takes the bounds of the times from a part of the request.
func logTimes(query *revisionlog.Query, part string, start, end *string) error {
	for name, bound := range map[string]struct {
		sent *string
		to   *time.Time
	}{"start_time": {start, &query.From}, "end_time": {end, &query.To}} {
		if bound.sent == nil {
			continue
		}
		var err error
		if *bound.to, err = time.Parse(time.RFC3339Nano, *bound.sent); err != nil {
			return fault.Shape(fault.Detail{Loc: []any{part, name}, Type: "datetime_parsing", Msg: "Input should be a date and time as RFC 3339 has them"})
		}
	}
	return nil
}

func showLine(line revisionlog.Line) LogEntry {
	return LogEntry{ID: line.ID, Timestamp: clock.Format(line.Timestamp), Level: LogLevel(line.Level), Message: line.Message}
}

// logAnswer is a page of a revision's log, or a stream of the lines as they are printed.
type logAnswer struct {
	server server
	ctx    context.Context
	at     revision.Ref
	kind   revisionlog.Kind
	filter deployment.LogFilter
	after  string
	stream bool
	page   record.Page[revisionlog.Line]
}

// VisitListRevisionLogsResponse implements ListRevisionLogsResponseObject.
func (l logAnswer) VisitListRevisionLogsResponse(w http.ResponseWriter) error {
	w.Header().Set("Vary", "Accept")
	if l.stream {
		w.Header().Set("Location", fmt.Sprintf("/v2/deployments/%s/revisions/%s/logs?type=%s", l.at.Deployment, l.at.Revision, l.kind))
		return web.NewStream(w).Follow(l.ctx, web.HeartbeatInterval, l.follow)
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(LogPage{Logs: web.ShowAll(l.page.Items, showLine), NextOffset: optional.Of(l.page.Cursor)})
}

// follow sends the lines, and after the last line the status of the revision.
func (l logAnswer) follow(ctx context.Context, send func(...web.Event) error) error {
	ended, err := l.server.Logs.Follow(ctx, l.at, l.kind, l.filter, l.after, func(lines []revisionlog.Line) error {
		events := make([]web.Event, len(lines))
		for i, entry := range web.ShowAll(lines, showLine) {
			data, err := json.Marshal(entry)
			if err != nil {
				return fmt.Errorf("encode log line: %w", err)
			}
			events[i] = web.Event{Name: eventLog, ID: entry.ID, Data: data}
		}
		return send(events...)
	})
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]revision.Status{"status": ended.Status})
	if err != nil {
		return fmt.Errorf("encode end of log: %w", err)
	}
	return send(web.Event{Name: eventEnd, Data: data})
}
