package lambda

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerRequestID = "Lambda-Runtime-Aws-Request-Id"
	headerDeadline  = "Lambda-Runtime-Deadline-Ms"
	headerARN       = "Lambda-Runtime-Invoked-Function-Arn"
	headerTrace     = "Lambda-Runtime-Trace-Id"
	// The trailers of a response that failed after it had begun.
	trailerErrorType = "Lambda-Runtime-Function-Error-Type"
	trailerErrorBody = "Lambda-Runtime-Function-Error-Body"
)

// breakGrace is how long it may take, after the end of a process's connection, to learn how
// the process ended.
const breakGrace = time.Second

// runtimeAPI returns the Runtime API for the process.
func (w *worker) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", w.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", w.withCall(w.response))
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", w.withCall(w.error))
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", w.failedInit)
	// A function that wants SIGTERM before its end registers as an extension without events.
	mux.HandleFunc("POST /2020-01-01/extension/register", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Lambda-Extension-Identifier", w.pool.function.Name)
	})
	mux.HandleFunc("GET /2020-01-01/extension/event/next", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return mux
}

// next waits for a call and sends it to the process.
func (w *worker) next(rw http.ResponseWriter, r *http.Request) {
	<-w.attached // the process may be faster than its starter
	l := w.pool.asked(w)
	if l == nil {
		<-r.Context().Done() // the process is about to end
		return
	}
	select {
	case call := <-l.calls:
		deadline := w.pool.handed(l)
		header := rw.Header()
		header.Set(headerRequestID, call.id)
		header.Set(headerDeadline, strconv.FormatInt(deadline.UnixMilli(), 10))
		header.Set(headerARN, w.pool.platform.ARN(w.pool.function.Name))
		header.Set(headerTrace, traceID(call.id))
		header.Set("Content-Type", "application/json")
		rw.Write(call.payload)
	case <-r.Context().Done():
	}
}

// traceID makes the id of a trace from the id of a call.
func traceID(id string) string {
	digits := strings.ReplaceAll(id, "-", "")
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", time.Now().Unix(), digits[:24], digits[16:])
}

// withCall finds the call of a request from the process.
func (w *worker) withCall(do func(http.ResponseWriter, *http.Request, *lane, *invocation)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		l, call := w.pool.currentCall(w, r.PathValue("id"))
		if call == nil {
			refuse(rw, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
			return
		}
		do(rw, r, l, call)
	}
}

func refuse(rw http.ResponseWriter, status int, name, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	rw.Write(platformError(name, "%s", message).Payload)
}

// response receives the answer of a call, whole or as a stream.
func (w *worker) response(rw http.ResponseWriter, r *http.Request, l *lane, call *invocation) {
	if call.streaming {
		w.stream(rw, r, l, call)
		return
	}
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxResponse+1))
	if err != nil {
		return // the process is ending, and its call with it
	}
	if len(payload) > MaxResponse {
		w.pool.finish(l, call, answer{err: tooLarge(MaxResponse)})
		refuse(rw, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "Exceeded maximum allowed payload size.")
		return
	}
	rw.WriteHeader(http.StatusAccepted)
	if failure := trailed(r); failure != nil {
		w.pool.finish(l, call, answer{err: failure})
		return
	}
	w.pool.finish(l, call, answer{payload: payload})
}

// stream passes on the answer as it comes, up to MaxStream. A reader that disconnects does not end
// the function, and neither does an answer that is too long.
func (w *worker) stream(rw http.ResponseWriter, r *http.Request, l *lane, call *invocation) {
	reader, writer := io.Pipe()
	call.answer(answer{stream: reader, contentType: r.Header.Get("Content-Type")})
	var to io.Writer = writer
	buffer, left := make([]byte, 32<<10), MaxStream
	for {
		n, err := r.Body.Read(buffer)
		if n > 0 && to != nil {
			_, gone := to.Write(buffer[:min(n, left)])
			if left -= n; left < 0 {
				writer.CloseWithError(tooLarge(MaxStream))
			}
			if gone != nil || left < 0 {
				to = nil
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			writer.CloseWithError(call.failure(breakGrace))
			return
		}
	}
	if failure := trailed(r); failure != nil {
		writer.CloseWithError(failure)
	} else {
		writer.Close()
	}
	rw.WriteHeader(http.StatusAccepted)
	w.pool.finish(l, call, answer{})
}

// trailed returns the error in the trailers of a response.
func trailed(r *http.Request) *FunctionError {
	name := r.Trailer.Get(trailerErrorType)
	if name == "" {
		return nil
	}
	body, err := base64.StdEncoding.DecodeString(r.Trailer.Get(trailerErrorBody))
	if err != nil || len(body) == 0 {
		return platformError(name, "the function failed while it answered")
	}
	return reported(body)
}

func (w *worker) error(rw http.ResponseWriter, r *http.Request, l *lane, call *invocation) {
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxResponse))
	if err != nil {
		return
	}
	rw.WriteHeader(http.StatusAccepted)
	w.pool.finish(l, call, answer{err: reported(payload)})
}

// failedInit notes why a process cannot start; the process ends by itself.
func (w *worker) failedInit(rw http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(io.LimitReader(r.Body, MaxResponse))
	if err != nil {
		return
	}
	w.pool.mu.Lock()
	w.initError = reported(payload)
	w.pool.mu.Unlock()
	rw.WriteHeader(http.StatusAccepted)
}
