package web

import (
	"bytes"
	"io"
	"net/http"
)

// replacedBody is a body that the server has put in the place of a checked body.
type replacedBody struct{ *bytes.Reader }

// Close does nothing: the body is in memory.
func (replacedBody) Close() error { return nil }

// ReplaceBody puts a text in the place of the request's body, for a guard of Deciding.
func ReplaceBody(r *http.Request, text []byte) {
	r.Body, r.ContentLength = replacedBody{bytes.NewReader(text)}, int64(len(text))
	r.Header.Set("Content-Type", "application/json")
}

func isReplaced(r *http.Request) bool {
	_, is := r.Body.(replacedBody)
	return is
}

// CheckedBody returns the text of a body that was checked, nil if there is no such body, and
// leaves the body to be read again.
func CheckedBody(r *http.Request) ([]byte, error) {
	body, ok := r.Body.(checkedBody)
	if !ok {
		return nil, nil
	}
	text, err := io.ReadAll(body)
	if err == nil {
		_, err = body.Seek(0, io.SeekStart)
	}
	return text, err
}
