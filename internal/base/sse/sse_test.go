package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/sse"
)

func TestReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 20_000) // more than the reader's buffer
	for name, c := range map[string]struct {
		stream string
		want   []sse.Event
		err    error
	}{
		"names and ids":    {"event: a\ndata: 1\nid: 7\n\nid: 8\nevent: a\ndata: 2\n\n", []sse.Event{{ID: "7", Name: "a", Data: []byte("1")}, {ID: "8", Name: "a", Data: []byte("2")}}, io.EOF},
		"no name":          {"event: a\ndata: 1\n\ndata: 2\n\nevent:\ndata: 3\n\n", []sse.Event{{Name: "a", Data: []byte("1")}, {Name: sse.DefaultName, Data: []byte("2")}, {Name: sse.DefaultName, Data: []byte("3")}}, io.EOF},
		"several lines":    {"data: 1\r\ndata:  2\r\ndata\r\n\r\n", []sse.Event{{Name: sse.DefaultName, Data: []byte("1\n 2\n")}}, io.EOF},
		"comments, retry":  {": " + long + "\n:\ndata: 1\nretry: 5\n: heartbeat\n\n", []sse.Event{{Name: sse.DefaultName, Data: []byte("1")}}, io.EOF},
		"no data":          {"event: a\nid: 1\n\ndata: 1\n\n", []sse.Event{{Name: sse.DefaultName, Data: []byte("1")}}, io.EOF},
		"long data":        {"data: " + long + "\n\n", []sse.Event{{Name: sse.DefaultName, Data: []byte(long)}}, io.EOF},
		"ends in an event": {"data: 1\n\ndata: 2\n", []sse.Event{{Name: sse.DefaultName, Data: []byte("1")}}, io.ErrUnexpectedEOF},
		"ends in a line":   {"data: " + long, nil, io.ErrUnexpectedEOF},
		"ends in a name":   {"event: a", nil, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []io.Reader{strings.NewReader(c.stream), iotest.OneByteReader(strings.NewReader(c.stream))} {
				got, err := readAll(body, len(long))
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if !errors.Is(err, c.err) {
					t.Errorf("ended with %v, want %v", err, c.err)
				}
			}
		})
	}
}

func TestReaderRefusesWhatIsTooLong(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"data": "data: 123\ndata: 4\n\n", "name": "event: " + strings.Repeat("x", 20_000) + "\n", "id": "id: " + strings.Repeat("x", 20_000) + "\n",
	} {
		events, err := readAll(strings.NewReader(stream), 4)
		if _, ok := errors.AsType[*sse.FormatError](err); !ok || len(events) != 0 {
			t.Errorf("%s: got %v, %v, want a format error", name, events, err)
		}
	}
}

func readAll(body io.Reader, limit int) ([]sse.Event, error) {
	reader := sse.NewReader(body, limit)
	defer reader.Release()
	var events []sse.Event
	for {
		event, err := reader.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}
