package loopback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Answer is the answer to a request that the server has sent itself. It is an http.ResponseWriter.
type Answer struct {
	Status int
	Body   bytes.Buffer
	// Limit is the largest size of the body in bytes; 0, for the small answers to commands, means
	// no limit. Full says that the answer was larger.
	Limit int
	Full  bool
	// To gets the body of an answer with status 200 instead, unless it is nil.
	To io.Writer

	header http.Header
}

// errFull ends an answer that is larger than its limit.
var errFull = errors.New("the answer is too large")

// Header returns the header, which no client sees before CopyTo.
func (a *Answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader notes the status.
func (a *Answer) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
}

// Write keeps the body.
func (a *Answer) Write(part []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.To != nil && a.Status == http.StatusOK {
		return a.To.Write(part)
	}
	if a.Full = a.Full || (a.Limit > 0 && a.Body.Len()+len(part) > a.Limit); a.Full {
		return 0, errFull
	}
	return a.Body.Write(part)
}

// Message returns the text of the answer for a person.
func (a *Answer) Message() string {
	var problem struct{ Detail json.RawMessage }
	_ = json.Unmarshal(a.Body.Bytes(), &problem) // the Mux has made it
	var sentence string
	if json.Unmarshal(problem.Detail, &sentence) == nil {
		return sentence
	}
	var details []fault.Detail
	_ = json.Unmarshal(problem.Detail, &details) // as above
	all := make([]string, len(details))
	for i, detail := range details {
		all[i] = fmt.Sprintf("%v: %s", detail.Loc, detail.Msg)
	}
	return strings.Join(all, "; ")
}

// CopyTo writes the answer to a client.
func (a *Answer) CopyTo(w http.ResponseWriter) error {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.Status)
	_, err := w.Write(a.Body.Bytes())
	return err
}
