package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// The server reads on for a while when a client sends too much, because most clients read the
// answer only after they have sent everything.
const (
	drainFactor = 4
	drainTime   = 5 * time.Second
)

// rawArrival is how long a raw body may take to arrive: the senders of hooks are programs that
// give up after this time, too.
const rawArrival = 10 * time.Second

// body describes what the body of a request must look like.
type body struct {
	required bool
	limit    int64
	// arrival is how long it may take to arrive.
	arrival time.Duration
	// raw bodies are of any type, and are passed on without a check: the content of a signed body
	// cannot be examined before its signature. The contract describes them as */*.
	raw bool
	// plain bodies may be plain text: see hasKey.
	plain  bool
	shape  *shape
	schema *schema
}

// checkedBody is the body of a request that was checked. The generated handler's decoder
// (runtime.BindJSONBody) binds the value; Read returns the received text to all other readers.
type checkedBody struct {
	*bytes.Reader
	value any
}

// Close does nothing: the body was read to its end.
func (checkedBody) Close() error { return nil }

// ValidatedValue returns the value to bind.
func (b checkedBody) ValidatedValue() any { return b.value }

// rawBody is a raw body, which is read when the handler begins to read it: a caller that may
// not send a body is refused before the body is read.
type rawBody struct {
	io.Closer
	read func() ([]byte, error)
	text *bytes.Reader
}

func (b *rawBody) Read(p []byte) (int, error) {
	if b.text == nil {
		text, err := b.read()
		if err != nil {
			return 0, err
		}
		b.text = bytes.NewReader(text)
	}
	return b.text.Read(p)
}

func (l *loader) body(at pointer) (*body, error) {
	at, err := l.document.follow(at)
	if err != nil {
		return nil, err
	}
	definition := object(l.document.at(at))
	b := &body{limit: l.bodyLimit, arrival: l.arrival, required: definition["required"] == true, plain: l.document["x-plain-text"] == true}
	content := at.child("content")
	if l.document.at(content.child("*/*")) != nil {
		b.raw, b.arrival = true, min(l.arrival, rawArrival)
		if limit, stated := definition["x-body-limit"].(json.Number); stated {
			if b.limit, err = limit.Int64(); err != nil {
				return nil, fmt.Errorf("x-body-limit: %w", err)
			}
		}
		return b, nil
	}
	at = content.child("application/json").child("schema")
	if l.document.at(at) == nil {
		return nil, errors.New("it has no schema for application/json")
	}
	if b.schema, err = l.schema(at); err != nil {
		return nil, err
	}
	if b.shape, err = l.shape(at, map[string]*shape{}); err != nil {
		return nil, err
	}
	return b, nil
}

// check reads the body and checks it. ignored are the members that no schema knows. An error
// says that the body could not be read as JSON at all.
func (b *body) check(r *http.Request) (problem problems, ignored []string, err error) {
	if b.raw {
		arriveWithin(r, b.arrival)
		sent := *r
		r.Body = &rawBody{Closer: r.Body, read: func() ([]byte, error) { return b.read(&sent) }}
		return nil, nil, nil
	}
	text, err := b.read(r)
	if err != nil {
		return nil, nil, err
	}
	if len(text) == 0 {
		r.Body = http.NoBody
		if b.required {
			return problems{newProblem([]any{"body"}, "missing", "Field required")}, nil, nil
		}
		return nil, nil, nil
	}
	check, bind, s, err := b.split(text)
	if err != nil {
		return nil, nil, err
	}
	r.Body = checkedBody{bytes.NewReader(text), bind}
	return b.schema.validate(check, "body"), s.ignored, nil
}

// read reads the body into memory, for which the budget must have room.
func (b *body) read(r *http.Request) ([]byte, error) {
	if r.ContentLength == 0 || r.Body == nil {
		return nil, nil
	}
	if !b.raw && !b.isJSON(r.Header) {
		return nil, fault.New(fault.UnsupportedMediaType, "The body must be JSON: send Content-Type: application/json.")
	}
	if r.ContentLength > b.limit {
		return nil, b.tooLarge(r)
	}
	arriveWithin(r, b.arrival)
	room := roomOf(r, b.arrival)
	var tally *budget.Tally
	if !b.raw {
		tally = &budget.Tally{}
	}
	text, err := readText(counted{io.LimitReader(r.Body, b.limit+1), room, r, tally}, r.ContentLength)
	switch {
	case errors.Is(err, errTooManyValues):
		// The rest of the body takes no memory while it arrives.
		room.share.Close()
		drain(r, b.arrival, b.limit)
		return nil, errTooManyValues
	case errors.Is(err, errNoRoom):
		return nil, errNoRoom
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fault.New(fault.Invalid, "The body did not arrive within %s.", b.arrival)
	case err != nil && r.Context().Err() != nil: // the client has gone
		return nil, fmt.Errorf("read body: %w", r.Context().Err())
	case err != nil:
		return nil, invalidJSON(0, "the body ended early")
	case int64(len(text)) > b.limit:
		return nil, b.tooLarge(r)
	case b.raw:
		return text, nil
	}
	return text, room.work(r.Context(), text, tally.Add(nil))
}

// readText reads a text to its end. stated is the length that the sender states, -1 if the sender
// states no length. The text is kept in parts until it is complete, so that a text that is still
// arriving has room for little more than the bytes that have arrived, and not for a stated length.
func readText(from io.Reader, stated int64) ([]byte, error) {
	const first, most = 64 << 10, 1 << 20 // bytes of a part
	size, arrived := first, 0
	if 0 <= stated && stated < first {
		size = int(stated) + 1 // the last byte is for the end of the text
	}
	var parts [][]byte
	part := make([]byte, 0, size)
	for {
		n, err := from.Read(part[len(part):cap(part)])
		part, arrived = part[:len(part)+n], arrived+n
		switch {
		case err == io.EOF && len(parts) == 0:
			return part, nil
		case err == io.EOF:
			return slices.Concat(append(parts, part)...), nil
		case err != nil:
			return nil, err
		case len(part) == cap(part):
			parts = append(parts, part)
			part = make([]byte, 0, min(arrived, most))
		}
	}
}

// tooLarge refuses the body. It first reads on, up to a bound, unless the client waits for
// permission to send (100-continue).
func (b *body) tooLarge(r *http.Request) error {
	if r.Header.Get("Expect") == "" {
		drain(r, drainTime, drainFactor*b.limit)
	}
	return fault.New(fault.TooLarge, "The body is larger than %d bytes.", b.limit)
}

// drain reads on and keeps nothing, for at most a time and a number of bytes.
func drain(r *http.Request, within time.Duration, most int64) {
	arriveWithin(r, within)
	// An error says that the client has gone, or is too slow to wait for: it gets the same answer.
	_, _ = io.CopyN(io.Discard, r.Body, most)
}

// split reads the text as JSON.
func (b *body) split(text []byte) (check, bind any, s *splitter, err error) {
	if !utf8.Valid(text) {
		return nil, nil, nil, invalidJSON(firstInvalidUTF8(text), "the text is not UTF-8")
	}
	s = &splitter{}
	loc := append(make([]any, 0, 8), "body")
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' && b.shape.properties != nil {
		var members map[string]json.RawMessage
		if err := decode(text, &members); err != nil {
			return nil, nil, nil, err
		}
		check, bind = s.object(b.shape, members, loc)
	} else {
		var whole json.RawMessage
		if err := decode(text, &whole); err != nil {
			return nil, nil, nil, err
		}
		check, bind = s.value(b.shape, whole, loc)
	}
	if s.values > mostValues {
		return nil, nil, nil, fault.Shape(fault.Detail{
			Loc: []any{"body"}, Type: "too_long", Msg: fmt.Sprintf("The body should have at most %d values", mostValues),
		})
	}
	return check, bind, s, nil
}

// decode decodes JSON that every reader of the body can decode, too.
func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return invalidJSON(int(syntax.Offset), syntax.Error())
	}
	if err != nil {
		return invalidJSON(0, err.Error())
	}
	return CheckReadable(text)
}

// invalidJSON says at which place the text stops being JSON.
func invalidJSON(offset int, reason string) error {
	return fault.Shape(fault.Detail{Loc: []any{"body", offset}, Msg: "JSON decode error: " + reason, Type: "json_invalid"})
}

func firstInvalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// isJSON reports whether the Content-Type is JSON, or plain text where that counts as JSON. A body
// without a Content-Type is read as JSON.
func (b *body) isJSON(header http.Header) bool {
	contentType := header.Get("Content-Type")
	if contentType == "" || contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json") || media == "text/plain" && b.plain && hasKey(header))
}

// hasKey reports whether a request has a header that a page of another origin cannot send unless
// the server allows it. Such a page can send plain text, with the cookies and the password that the
// browser keeps for the server, but with no key and no token.
func hasKey(header http.Header) bool {
	scheme, _, _ := strings.Cut(header.Get("Authorization"), " ")
	return len(header.Values("X-Api-Key")) > 0 || strings.EqualFold(scheme, "Bearer")
}
