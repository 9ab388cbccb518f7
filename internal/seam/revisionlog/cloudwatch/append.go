package cloudwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

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
		events[i] = types.InputLogEvent{Message: aws.String(cmp.Or(line, "\n")), Timestamp: aws.Int64(now)} // an empty one is refused
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
