package lambdahost

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// bufferedMargin is how long before its deadline a request is cut short; its answer only
	// has to be passed on.
	bufferedMargin = time.Second
	// maxResponse is the most bytes of JSON that a function's response may have. A larger
	// response ends the process.
	maxResponse = 6 << 20
	// maxGrowth is the most bytes of JSON that a byte of a body may become: \u003c.
	maxGrowth = 6
)

// BufferedFunc is the function behind routes of API Gateway that answer at once.
type BufferedFunc func(context.Context, events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error)

// Buffered returns the function that lets the handler answer.
func Buffered(handler http.Handler, log *slog.Logger) BufferedFunc {
	return func(ctx context.Context, event events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		ctx, cancel := withinDeadline(ctx, bufferedMargin)
		defer cancel(nil)
		r, err := newRequest(ctx, &event)
		if err != nil {
			log.WarnContext(ctx, "event is not a request", "error", err)
			return instead(ctx, http.StatusBadRequest, "The request could not be read."), nil
		}
		var body buffer
		w := newResponse(r, &body, func() {})
		if err := serve(handler, w, r, log); err != nil && !body.full {
			// No part of it has left this process.
			body.Reset()
			w = newResponse(r, &body, func() {})
			fail(ctx, w)
		}
		answer := encode(w, body.Bytes())
		if body.full || isTooLarge(answer) {
			log.ErrorContext(ctx, "response is too large", "route", r.Pattern, "bytes", body.Len())
			return instead(ctx, http.StatusRequestEntityTooLarge, tooLarge), nil
		}
		return answer, nil
	}
}

// tooLarge is the text for an answer that cannot be sent. Only applications of repositories, which
// choose their paths, can choose a path whose answers are streams.
const tooLarge = "The answer is larger than 6 MB, the most that can be sent at this path. Ask for less. " +
	"An agent's own HTTP application can send more at a path that the agent server does not have."

// buffer takes as many bytes as an answer may have.
type buffer struct {
	bytes.Buffer
	// full says that there were more.
	full bool
}

var errFull = errors.New("the answer is too large")

// Write fails if there is no room, so that the handler stops to write what cannot be sent.
func (b *buffer) Write(data []byte) (int, error) {
	if b.full = b.full || b.Len()+len(data) > maxResponse; b.full {
		return 0, errFull
	}
	return b.Buffer.Write(data)
}

// instead is the answer in the place of an answer that cannot be given.
func instead(ctx context.Context, status int, detail string) events.APIGatewayProxyResponse {
	var body bytes.Buffer
	w := &response{out: &body, begun: func() {}, header: http.Header{}}
	refuse(ctx, w, status, detail)
	return encode(w, body.Bytes())
}

func encode(w *response, body []byte) events.APIGatewayProxyResponse {
	answer := events.APIGatewayProxyResponse{StatusCode: w.status, MultiValueHeaders: w.sent, Body: string(body)}
	if !utf8.Valid(body) {
		answer.Body, answer.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	return answer
}

func isTooLarge(answer events.APIGatewayProxyResponse) bool {
	if len(answer.Body) < maxResponse/maxGrowth-headroom {
		return false
	}
	encoded, err := json.Marshal(answer)
	return err != nil || len(encoded) > maxResponse
}

// headroom is the space for the JSON around the body.
const headroom = 16 << 10
