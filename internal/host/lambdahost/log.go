package lambdahost

import (
	"context"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// NewLog returns a log of JSON lines in Lambda's own log format. Log lines under the context of
// an invocation carry its id.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(invocationLog{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: lambdacontext.ReplaceAttr})})
}

// invocationLog adds the invocation's id, and to errors the function's name and version.
type invocationLog struct{ slog.Handler }

func (l invocationLog) Handle(ctx context.Context, record slog.Record) error {
	if id := invocation(ctx); id != "" {
		record.AddAttrs(slog.String("requestId", id))
	}
	if record.Level >= slog.LevelError {
		// Alarms about a new version count its errors.
		record.AddAttrs(slog.String("function", lambdacontext.FunctionName), slog.String("version", lambdacontext.FunctionVersion))
	}
	return l.Handler.Handle(ctx, record)
}

func (l invocationLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return invocationLog{l.Handler.WithAttrs(attrs)}
}

func (l invocationLog) WithGroup(name string) slog.Handler {
	return invocationLog{l.Handler.WithGroup(name)}
}

// invocation is the id of the invocation that ctx belongs to. The id that API Gateway gives a
// request is not used anywhere: local gateways repeat it.
func invocation(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lc.AwsRequestID
	}
	return ""
}
