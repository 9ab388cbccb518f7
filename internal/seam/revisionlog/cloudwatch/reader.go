package cloudwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// maxDelay is how long a line may take from an agent's standard output to an answer, because
	// the log driver and CodeBuild send batches.
	maxDelay = 10 * time.Second
	// eventLimit is the most events that one request may ask for.
	eventLimit = 10000
	// skew is how far the clocks of the account's machines may differ.
	skew = time.Minute
)

// throttles knows the refusals of an account that has sent too many requests.
var throttles = retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}

// Config holds the settings of Logs.
type Config struct {
	// AWS holds region, credentials and, for tests, an endpoint.
	AWS aws.Config
	// Builds and Agents are the log groups. A group that is "" has no lines.
	Builds, Agents string
}

// Logs implements revisionlog.Reader and revisionlog.Appender.
type Logs struct {
	logs   *cloudwatchlogs.Client
	groups map[revisionlog.Kind]string

	mu sync.Mutex
	// watching are the watchers of each log.
	watching map[revisionlog.Log][]*watcher
}

var (
	_ revisionlog.Reader   = (*Logs)(nil)
	_ revisionlog.Appender = (*Logs)(nil)
)

// New returns the logs of two groups. It sends no request.
func New(cfg Config) *Logs {
	return &Logs{
		logs:     cloudwatchlogs.NewFromConfig(cfg.AWS),
		groups:   map[revisionlog.Kind]string{revisionlog.Build: cfg.Builds, revisionlog.Deploy: cfg.Agents},
		watching: map[revisionlog.Log][]*watcher{},
	}
}

// MaxDelay is how long after its printing a line may appear.
func (r *Logs) MaxDelay() time.Duration { return maxDelay }

// Read returns a page of a log.
func (r *Logs) Read(ctx context.Context, log revisionlog.Log, query revisionlog.Query) (revisionlog.Page, error) {
	if !id.Valid(log.Revision) {
		return revisionlog.Page{}, fmt.Errorf("log of revision %q: not an id", log.Revision)
	}
	after, err := parsePosition(query.After)
	if err != nil {
		return revisionlog.Page{}, err
	}
	group := r.groups[log.Kind]
	if group == "" {
		return revisionlog.Page{Next: query.After}, nil
	}
	events, more, err := r.find(ctx, request(group, log, query, after), query, after)
	if throttles.IsErrorThrottle(err) == aws.TrueTernary {
		r.notify(log, (*watcher).refused)
		err = revisionlog.ErrBusy
	}
	if err != nil {
		return revisionlog.Page{}, fmt.Errorf("read %s log of revision %s: %w", log.Kind, log.Revision, err)
	}
	if len(events) > 0 && !query.Backward {
		r.notify(log, (*watcher).found)
	}
	page := revisionlog.Page{Next: query.After, More: more || len(events) > query.Limit}
	for _, event := range events[:min(len(events), query.Limit)] {
		message := strings.TrimRight(aws.ToString(event.Message), "\r\n")
		page.Next = positionOf(event).String()
		page.Lines = append(page.Lines, revisionlog.Line{
			ID: page.Next, Timestamp: time.UnixMilli(aws.ToInt64(event.Timestamp)).UTC(), Level: revisionlog.LevelOf(message), Message: message,
		})
	}
	return page, nil
}

// request asks for the lines behind a place, together with the lines of its millisecond. No
// line is older than the revision itself. With this bound, CloudWatch searches less.
func request(group string, log revisionlog.Log, query revisionlog.Query, after logPosition) *cloudwatchlogs.FilterLogEventsInput {
	from := id.Time(log.Revision).Add(-skew)
	if query.From.After(from) {
		from = query.From
	}
	input := &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: aws.String(group), LogStreamNamePrefix: aws.String(log.Revision + "/"),
		StartTime: aws.Int64(from.UnixMilli()), StartFromHead: aws.Bool(!query.Backward),
		// The query asks for some more events, of the millisecond that the page ends in.
		Limit: aws.Int32(int32(min(query.Limit+100, eventLimit))),
	}
	if !query.To.IsZero() {
		input.EndTime = aws.Int64(query.To.UnixMilli())
	}
	switch {
	case after.event == "":
	case query.Backward:
		input.EndTime = aws.Int64(min(after.ms, aws.ToInt64(cmp.Or(input.EndTime, &after.ms))))
	default:
		input.StartTime = aws.Int64(max(after.ms, *input.StartTime))
	}
	return input
}

// find returns at least the events that a page takes, sorted, with all lines of the
// millisecond in which the page ends. more is true if CloudWatch has not searched everything.
func (r *Logs) find(ctx context.Context, input *cloudwatchlogs.FilterLogEventsInput, query revisionlog.Query, after logPosition) (events []types.FilteredLogEvent, more bool, err error) {
	if input.EndTime != nil && *input.EndTime < *input.StartTime {
		return nil, false, nil
	}
	order := comparePositions
	if query.Backward {
		order = func(a, b logPosition) int { return comparePositions(b, a) }
	}
	for {
		page, err := r.logs.FilterLogEvents(ctx, input)
		if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
			return events, false, nil // nothing was printed yet
		}
		if err != nil {
			return nil, false, err
		}
		for _, event := range page.Events {
			if after.event == "" || order(positionOf(event), after) > 0 {
				events = append(events, event)
			}
		}
		more = aws.ToString(page.NextToken) != ""
		if !more || isCut(events, query.Limit) {
			slices.SortFunc(events, func(a, b types.FilteredLogEvent) int { return order(positionOf(a), positionOf(b)) })
			return events, more, nil
		}
		input.NextToken = page.NextToken
	}
}

// isCut reports whether a page can end within these events: the last event is of a later
// millisecond than the one in which the page ends.
func isCut(events []types.FilteredLogEvent, limit int) bool {
	return len(events) > limit && aws.ToInt64(events[limit-1].Timestamp) != aws.ToInt64(events[len(events)-1].Timestamp)
}

// logPosition is the position of an event in its log.
type logPosition struct {
	ms    int64
	event string
}

func positionOf(event types.FilteredLogEvent) logPosition {
	return logPosition{aws.ToInt64(event.Timestamp), aws.ToString(event.EventId)}
}

func (p logPosition) String() string { return strconv.FormatInt(p.ms, 10) + "-" + p.event }

// comparePositions orders events. Their ids are numbers.
func comparePositions(a, b logPosition) int {
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(len(a.event), len(b.event)), cmp.Compare(a.event, b.event))
}

func parsePosition(text string) (logPosition, error) {
	if text == "" {
		return logPosition{}, nil
	}
	digits, event, ok := strings.Cut(text, "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	if !ok || event == "" || err != nil || ms < 0 {
		return logPosition{}, revisionlog.ErrPosition
	}
	return logPosition{ms, event}, nil
}

// appended ends the name of the stream with the lines that Append adds.
const appended = "/listener"

// Append adds lines to a log, in one request: the service takes 1 MB at once.
func (r *Logs) Append(ctx context.Context, log revisionlog.Log, lines []string) error {
	group := r.groups[log.Kind]
	if !id.Valid(log.Revision) || group == "" {
		return fmt.Errorf("append to %s log of revision %q: there is no such log", log.Kind, log.Revision)
	}
	now := time.Now().UnixMilli()
	events := make([]types.InputLogEvent, len(lines))
	for i, line := range lines {
		// CloudWatch refuses an empty message.
		events[i] = types.InputLogEvent{Message: aws.String(cmp.Or(line, "\n")), Timestamp: aws.Int64(now)}
	}
	input := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String(group), LogStreamName: aws.String(log.Revision + appended), LogEvents: events}
	_, err := r.logs.PutLogEvents(ctx, input)
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		if err = r.createStream(ctx, input); err == nil {
			_, err = r.logs.PutLogEvents(ctx, input)
		}
	}
	if err != nil {
		return fmt.Errorf("append to %s log of revision %s: %w", log.Kind, log.Revision, err)
	}
	return nil
}

// createStream creates a stream. Another caller may have created it meanwhile.
func (r *Logs) createStream(ctx context.Context, input *cloudwatchlogs.PutLogEventsInput) error {
	_, err := r.logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: input.LogGroupName, LogStreamName: input.LogStreamName})
	if _, exists := errors.AsType[*types.ResourceAlreadyExistsException](err); exists {
		return nil
	}
	return err
}
