package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// New returns the handler of all interfaces. Clients use its address with /v1 at the end as the
// base URL of OpenAI, and without it as that of Anthropic. unknown is called with each request
// that no interface has.
func New(unknown func(method, path string)) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*writer, []byte) error{
		"POST /v1/chat/completions": chat,
		"POST /v1/responses":        responses,
		"POST /v1/messages":         messages,
		"POST /v1/embeddings":       embeddings,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the client has gone
			}
			out := &writer{ResponseWriter: w, done: r.Context().Done()}
			if err := serve(out, body); err != nil && !errors.Is(err, errGone) {
				out.whole(http.StatusBadRequest, object{"error": object{"type": "invalid_request_error", "message": err.Error()}})
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		unknown(r.Method, r.URL.Path)
		http.Error(w, `{"error": {"type": "not_found_error", "message": "There is no such operation."}}`, http.StatusNotFound)
	})
	return mux
}

// errGone says that the client does not read the rest of a stream.
var errGone = errors.New("the client has gone")

// object is a JSON object.
type object map[string]any

// model is the name that answers have.
const model = "fixed-answers"

type writer struct {
	http.ResponseWriter

	done <-chan struct{}
}

// whole sends a response that is not streamed.
func (w *writer) whole(status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, encode(body))
}

// event sends one event of a stream; its name is "" where the interface names no events.
func (w *writer) event(name string, data any) error {
	w.Header().Set("Content-Type", "text/event-stream")
	text, isText := data.(string)
	if !isText {
		text = encode(data)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, err := fmt.Fprintf(w, "%sdata: %s\n\n", name, text); err != nil {
		return errGone
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// speak calls say with each word of the reply, at the reply's pace.
func (w *writer) speak(r reply, say func(word string) error) error {
	ticker := time.NewTicker(max(r.pace, time.Microsecond))
	defer ticker.Stop()
	for _, word := range r.words {
		select {
		case <-w.done:
			return errGone
		case <-ticker.C:
		}
		if err := say(word); err != nil {
			return err
		}
	}
	return nil
}

// text returns the text of a message's content, which is a string or a list of parts.
func text(content json.RawMessage) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.Text)
		if part.Content != nil {
			all.WriteString(text(part.Content))
		}
	}
	return all.String()
}
