package lambdahost

import (
	"io"
	"net/http"
	"strings"
)

// response is an http.ResponseWriter that behaves like net/http's: the first write commits
// status and header; later changes of the header map have no effect.
type response struct {
	out io.Writer
	// begun is called when status and sent are set, before the first byte of the body.
	begun func()
	// head says that the request was a HEAD, which gets no body.
	head bool

	header http.Header
	status int
	sent   http.Header
}

func newResponse(r *http.Request, out io.Writer, begun func()) *response {
	return &response{out: out, begun: begun, head: r.Method == http.MethodHead, header: http.Header{}}
}

func (w *response) Header() http.Header { return w.header }

// WriteHeader commits the response. Informational statuses cannot be sent through API Gateway.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	w.begun()
}

// canBeTakenUp reports whether the committed response is an event stream that says where it goes
// on.
func (w *response) canBeTakenUp() bool {
	return w.sent.Get("Location") != "" && strings.HasPrefix(w.sent.Get("Content-Type"), "text/event-stream")
}

func (w *response) Write(data []byte) (int, error) {
	if w.status == 0 {
		if w.header.Get("Content-Type") == "" && len(data) > 0 {
			w.header.Set("Content-Type", http.DetectContentType(data))
		}
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.status == http.StatusNoContent || w.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case w.head || len(data) == 0:
		return len(data), nil
	}
	return w.out.Write(data)
}

// Flush commits the response; the written bytes are on their way already.
func (w *response) Flush() { w.WriteHeader(http.StatusOK) }
