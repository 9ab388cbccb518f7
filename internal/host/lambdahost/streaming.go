package lambdahost

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// streamingMargin is how long before its deadline a request is cut short: long enough for the
// current reads to end.
const streamingMargin = 3 * time.Second

// Unnoticed is how long a function goes on for a client that may have gone. The framework's clients
// give up after six ends of a stream without an event between them, so an agent may be silent for
// six times as long. Some of them count all ends, so they follow a run for six times as long.
const Unnoticed = 5 * time.Minute

// StreamingFunc is the function behind routes of API Gateway whose response transfer mode is
// STREAM. The response must be a pointer: a value would be encoded as JSON.
type StreamingFunc func(context.Context, events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error)

// Streaming returns the function that lets the handler answer as long as its invocation lasts.
// Each write of the handler is on its way to the client when it returns.
//
// A function is not told that a client has gone. So an event stream that its client can take up
// again (it has a Location) ends after resumable, like a stream whose invocation ends: a client
// that is there comes back, and a lost client occupies the function no longer than that.
func Streaming(handler http.Handler, log *slog.Logger, resumable time.Duration) StreamingFunc {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error) {
		within, cancel := withinDeadline(ctx, streamingMargin)
		r, err := newRequest(within, &event)
		if err != nil {
			cancel(nil)
			log.WarnContext(ctx, "event is not a request", "error", err)
			refused := instead(ctx, http.StatusBadRequest, "The request could not be read.")
			return &events.APIGatewayProxyStreamingResponse{
				StatusCode: refused.StatusCode, MultiValueHeaders: refused.MultiValueHeaders, Body: strings.NewReader(refused.Body),
			}, nil
		}
		out, in := io.Pipe()
		begun, ended := make(chan struct{}), make(chan struct{})
		w := newResponse(r, in, func() { close(begun) })
		go func() {
			defer close(ended)
			in.CloseWithError(serve(handler, w, r, log)) // it always returns nil
		}()
		<-begun
		if w.canBeTakenUp() {
			early := time.AfterFunc(resumable, func() { cancel(errComeBack) })
			context.AfterFunc(within, func() { early.Stop() })
		}
		end := func() {
			cancel(nil)
			select {
			case <-ended:
			case <-ctx.Done():
			}
		}
		return &events.APIGatewayProxyStreamingResponse{
			StatusCode: w.status, MultiValueHeaders: w.sent, Body: &streamedBody{PipeReader: out, end: end},
		}, nil
	}
}

// streamedBody is read while the handler writes it.
type streamedBody struct {
	*io.PipeReader
	end func()
}

// Close ends the handler, whose next write fails, before the process is given its next request
// or frozen.
func (b *streamedBody) Close() error {
	err := b.PipeReader.Close()
	b.end()
	return err
}
