package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/cmd/client"
)

// runStream is a run and the events that it streams.
type runStream struct {
	*client.Stream
	ID string
}

// startRun starts a run and streams it.
func startRun(ctx context.Context, c *client.Client, thread string, body any) (*runStream, error) {
	stream, err := c.Stream(ctx, http.MethodPost, thread+"/runs/stream", body)
	if err != nil {
		return nil, err
	}
	return &runStream{stream, path.Base(stream.Header.Get("Content-Location"))}, nil
}

// next returns the next event. The error is io.EOF only when the server ended the stream.
func (s *runStream) next(ctx context.Context) (sse.Event, error) {
	event, err := s.Next(ctx)
	if err != nil && err != io.EOF && ctx.Err() == nil {
		err = fmt.Errorf("read stream of run %s: %w", s.ID, err)
	}
	return event, err
}
