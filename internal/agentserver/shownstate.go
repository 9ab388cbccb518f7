package agentserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// shownState answers with a state whose values are written as they are: they are JSON as it is stored, and may be large.
type shownState ThreadState

// shownStates answers with a list of such.
type shownStates []ThreadState

// parts returns the answer's text in pieces, without a copy of the values.
func (s shownState) parts() ([][]byte, error) {
	values := s.Values
	s.Values = nil
	text, err := json.Marshal(ThreadState(s))
	if err != nil {
		return nil, err
	}
	head, ok := bytes.CutSuffix(text, []byte(`"values":null}`))
	if !ok {
		return nil, errors.New("values are not the last member of a state")
	}
	return [][]byte{head, []byte(`"values":`), orNull(values), []byte("}")}, nil
}

func (s shownState) write(w http.ResponseWriter) error {
	parts, err := s.parts()
	if err != nil {
		return err
	}
	return writeParts(w, parts)
}

func (s shownStates) write(w http.ResponseWriter) error {
	all := [][]byte{[]byte("[")}
	for i, one := range s {
		parts, err := shownState(one).parts()
		if err != nil {
			return err
		}
		if i > 0 {
			all = append(all, []byte(","))
		}
		all = append(all, parts...)
	}
	return writeParts(w, append(all, []byte("]")))
}

func writeParts(w http.ResponseWriter, parts [][]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(http.StatusOK)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil { //nolint:gosec // JSON by its media type, which browsers do not run
			return err
		}
	}
	return nil
}

// VisitGetThreadStateResponse implements GetThreadStateResponseObject.
func (s shownState) VisitGetThreadStateResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitGetThreadStateAtResponse implements GetThreadStateAtResponseObject.
func (s shownState) VisitGetThreadStateAtResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitFindThreadStateResponse implements FindThreadStateResponseObject.
func (s shownState) VisitFindThreadStateResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitGetThreadHistoryResponse implements GetThreadHistoryResponseObject.
func (s shownStates) VisitGetThreadHistoryResponse(w http.ResponseWriter) error { return s.write(w) }

// VisitFindThreadHistoryResponse implements FindThreadHistoryResponseObject.
func (s shownStates) VisitFindThreadHistoryResponse(w http.ResponseWriter) error { return s.write(w) }
