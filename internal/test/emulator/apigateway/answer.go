package apigateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer is the answer of a function, or the prelude of its stream.
type answer struct {
	StatusCode        *int                `json:"statusCode"`
	Headers           map[string]scalar   `json:"headers"`
	MultiValueHeaders map[string][]scalar `json:"multiValueHeaders"`
	Body              *string             `json:"body"`
	IsBase64Encoded   bool                `json:"isBase64Encoded"`
	Cookies           []string            `json:"cookies"`
}

// scalar is a text that may be written as a number or a boolean.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(text []byte) error {
	var plain string
	if json.Unmarshal(text, &plain) == nil {
		*s = scalar(plain)
		return nil
	}
	if len(text) > 0 && strings.ContainsRune("{[", rune(text[0])) {
		return errors.New("a header is a text")
	}
	*s = scalar(text)
	return nil
}

func readAnswer(text []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("malformed Lambda proxy response: %w", err)
	}
	if a.StatusCode == nil || *a.StatusCode < 100 || *a.StatusCode > 999 {
		return a, errors.New("malformed Lambda proxy response: there is no statusCode")
	}
	return a, nil
}

// remapped are headers that the gateway sets itself; if a function sets them, they are
// renamed.
var remapped = map[string]bool{
	"Connection": true, "Content-Length": true, "Content-Md5": true, "Date": true, "Host": true, "Server": true, "Trailer": true,
	"Transfer-Encoding": true, "Upgrade": true, "Www-Authenticate": true,
}

// writeHeader sends status and headers.
func (a *answer) writeHeader(w http.ResponseWriter) {
	header := w.Header()
	set := func(name string, values []scalar) {
		name = http.CanonicalHeaderKey(name)
		if remapped[name] {
			name = "X-Amzn-Remapped-" + name
		}
		header.Del(name)
		for _, value := range values {
			header.Add(name, string(value))
		}
	}
	for name, value := range a.Headers {
		set(name, []scalar{value})
	}
	for name, values := range a.MultiValueHeaders {
		set(name, values)
	}
	for _, cookie := range a.Cookies {
		header.Add("Set-Cookie", cookie)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	w.WriteHeader(*a.StatusCode)
}

// forward calls a function and sends its answer.
func (g *Gateway) forward(w http.ResponseWriter, c *call) *refusal {
	payload, err := g.proxyEvent(c)
	if err != nil {
		return internalError(err)
	}
	// The function continues when the client disconnects, and when the gateway stops waiting.
	ctx, cancel := context.WithTimeout(c.request.Context(), c.route.Timeout)
	defer cancel()
	text, err := g.functions.Invoke(ctx, c.route.Function, payload)
	if err != nil {
		return failed(err)
	}
	a, err := readAnswer(text)
	if err != nil {
		return badGateway(err)
	}
	var body []byte
	if a.Body != nil {
		body = []byte(*a.Body)
	}
	accept, _, _ := strings.Cut(c.request.Header.Get("Accept"), ",")
	if a.IsBase64Encoded && (g.isBinary(accept) || g.isBinary(a.header("Content-Type"))) {
		if body, err = base64.StdEncoding.DecodeString(*a.Body); err != nil {
			return internalError(fmt.Errorf("decode the body: %w", err))
		}
	}
	a.writeHeader(w)
	w.Write(body)
	return nil
}

func (a *answer) header(name string) string {
	for candidate, values := range a.MultiValueHeaders {
		if strings.EqualFold(candidate, name) && len(values) > 0 {
			return string(values[0])
		}
	}
	for candidate, value := range a.Headers {
		if strings.EqualFold(candidate, name) {
			return string(value)
		}
	}
	return ""
}

// stream calls a function and sends each part of its answer on as it comes. If the answer
// breaks off, the connection is broken off, too.
func (g *Gateway) stream(w http.ResponseWriter, c *call) *refusal {
	payload, err := g.proxyEvent(c)
	if err != nil {
		return internalError(err)
	}
	ctx, cancel := context.WithTimeout(c.request.Context(), c.route.Timeout)
	defer cancel()
	// A stream without data for idleLimit ends before its timeout.
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	idle := time.AfterFunc(idleLimit, func() { cut(context.DeadlineExceeded) })
	defer idle.Stop()
	stream, err := g.functions.InvokeStream(ctx, c.route.Function, payload)
	if err != nil {
		return failed(err)
	}
	defer stream.Close()
	if stream.Prelude == nil {
		return badGateway(errors.New("the function does not answer with a stream for API Gateway"))
	}
	a, err := readAnswer(stream.Prelude)
	if err != nil {
		return badGateway(err)
	}
	a.writeHeader(w)
	if err := relay(w, stream, func() { idle.Reset(idleLimit) }); err != nil {
		if c.request.Context().Err() == nil {
			g.log.Warn("stream breaks off", "request", c.id, "function", c.route.Function, "cause", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

// relay passes on the data at once when it comes.
func relay(w http.ResponseWriter, from io.Reader, arrived func()) error {
	controller := http.NewResponseController(w)
	if err := controller.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			arrived()
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := controller.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
