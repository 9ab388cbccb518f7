package cloudwatch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/cloudwatch"
	"github.com/slipway-run/slipway/internal/test/check"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// event is an event of CloudWatch.
type event struct {
	EventID   string `json:"eventId"`
	Stream    string `json:"logStreamName"`
	Message   string `json:"message"`
	Timestamp int64  `json:"timestamp"`
}

// recorded answers FilterLogEvents as the service's documentation says: by group, prefix and
// times, a page at a time, in either direction.
type recorded struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	groups   map[string][]event
	requests []filter
	// pageSize is how many events an answer has at most. Empty pages come before each.
	pageSize int
	refuse   func(w http.ResponseWriter) bool
}

type filter struct {
	LogGroupName, LogStreamNamePrefix, NextToken string
	StartTime, EndTime                           *int64
	Limit                                        int
	StartFromHead                                *bool
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	r := &recorded{t: t, groups: map[string][]event{}, pageSize: 1000}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func awsConfig(url string) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", ""), RetryMaxAttempts: 1,
	}
}

func (r *recorded) reader() *cloudwatch.Logs {
	return cloudwatch.New(cloudwatch.Config{AWS: awsConfig(r.URL), Builds: "/slipway/builds", Agents: "/slipway/agents"})
}

// print adds a line for each number of at, which is the line's time in milliseconds since
// noon.
func (r *recorded) print(group, stream string, at ...int) {
	for _, ms := range at {
		n := len(r.groups[group])
		r.groups[group] = append(r.groups[group], event{
			EventID: fmt.Sprintf("%056d", 1000000-n), Stream: stream, Message: fmt.Sprintf("%s %d\n", stream[len(stream)-1:], ms),
			Timestamp: noon.UnixMilli() + int64(ms),
		})
	}
}

func (r *recorded) serve(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	var asked filter
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || !strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".FilterLogEvents") {
		r.t.Errorf("got %s, %v", request.Header.Get("X-Amz-Target"), err)
	}
	r.requests = append(r.requests, asked)
	if r.refuse != nil && r.refuse(w) {
		return
	}
	var found []event
	for _, e := range r.groups[asked.LogGroupName] {
		if strings.HasPrefix(e.Stream, asked.LogStreamNamePrefix) && e.Timestamp >= *asked.StartTime && (asked.EndTime == nil || e.Timestamp <= *asked.EndTime) {
			found = append(found, e)
		}
	}
	sort.SliceStable(found, func(a, b int) bool { return found[a].Timestamp < found[b].Timestamp })
	if !*asked.StartFromHead {
		slices.Reverse(found)
	}
	begin, _ := strconv.Atoi(strings.TrimSuffix(asked.NextToken, "empty"))
	answer := map[string]any{}
	if rest := found[min(begin, len(found)):]; strings.HasSuffix(asked.NextToken, "empty") || len(rest) == 0 {
		answer["events"] = rest[:min(len(rest), r.pageSize, asked.Limit)]
		if size := min(len(rest), r.pageSize, asked.Limit); size < len(rest) {
			answer["nextToken"] = fmt.Sprint(begin+size, "empty")
		}
	} else {
		answer["events"], answer["nextToken"] = []event{}, fmt.Sprint(begin, "empty")
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		r.t.Error(err)
	}
}

// all reads a whole log page by page, and checks that each page except the last is full.
func all(t *testing.T, r *cloudwatch.Logs, log revisionlog.Log, query revisionlog.Query) string {
	t.Helper()
	var lines []string
	for more := true; more; {
		page, err := r.Read(t.Context(), log, query)
		check.Must(t, err)
		if len(page.Lines) > query.Limit {
			t.Fatalf("got %d lines, want %d at most", len(page.Lines), query.Limit)
		}
		for _, line := range page.Lines {
			lines = append(lines, line.Message)
		}
		query.After, more = page.Next, page.More
	}
	return strings.Join(lines, ", ")
}

func TestALogIsReadInEitherDirection(t *testing.T) {
	t.Parallel()
	r, log := newRecorded(t), revisionlog.Log{Revision: id.New(noon), Kind: revisionlog.Deploy}
	r.print("/slipway/agents", log.Revision+"/Main/a", 1, 3, 5, 5, 9)
	r.print("/slipway/agents", log.Revision+"/Main/b", 2, 5, 5, 5, 8)
	r.print("/slipway/agents", id.New(noon)+"/Main/x", 1, 2, 3)
	r.print("/slipway/builds", log.Revision+"/y", 1)
	// Lines of one millisecond are in the order of their ids, which here is the order of
	// neither stream.
	forward := "a 1, b 2, a 3, b 5, b 5, b 5, a 5, a 5, b 8, a 9"
	backward := strings.Split(forward, ", ")
	slices.Reverse(backward)
	for _, size := range []int{1, 2, 3, 100} {
		for _, limit := range []int{1, 2, 3, 4, 100} {
			r.pageSize = size
			if got := all(t, r.reader(), log, revisionlog.Query{Limit: limit}); got != forward {
				t.Errorf("pages of %d in answers of %d: got %s", limit, size, got)
			}
			if got := all(t, r.reader(), log, revisionlog.Query{Limit: limit, Backward: true}); got != strings.Join(backward, ", ") {
				t.Errorf("backward, pages of %d in answers of %d: got %s", limit, size, got)
			}
			within := revisionlog.Query{Limit: limit, From: noon.Add(3 * time.Millisecond), To: noon.Add(8 * time.Millisecond)}
			if got := all(t, r.reader(), log, within); got != "a 3, b 5, b 5, b 5, a 5, a 5, b 8" {
				t.Errorf("within times, pages of %d in answers of %d: got %s", limit, size, got)
			}
		}
	}
	if got := all(t, r.reader(), revisionlog.Log{Revision: log.Revision, Kind: revisionlog.Build}, revisionlog.Query{Limit: 10}); got != "y 1" {
		t.Errorf("build log: got %s", got)
	}
	if begin := *r.requests[0].StartTime; begin != noon.Add(-time.Minute).UnixMilli() {
		t.Errorf("the search begins at %d", begin)
	}
}

// TestReadingGoesOnWithLaterLines keeps a position at the end of the log.
func TestReadingGoesOnWithLaterLines(t *testing.T) {
	t.Parallel()
	r, log := newRecorded(t), revisionlog.Log{Revision: id.New(noon), Kind: revisionlog.Deploy}
	reader := r.reader()
	page, err := reader.Read(t.Context(), log, revisionlog.Query{Limit: 10})
	if err != nil || len(page.Lines) != 0 || page.More {
		t.Fatalf("got %+v, %v", page, err)
	}
	r.print("/slipway/agents", log.Revision+"/Main/a", 1, 2)
	page, err = reader.Read(t.Context(), log, revisionlog.Query{Limit: 10, After: page.Next})
	if err != nil || len(page.Lines) != 2 || page.Lines[1].Timestamp != noon.Add(2*time.Millisecond) || page.Lines[1].Level != revisionlog.Info {
		t.Fatalf("got %+v, %v", page, err)
	}
	r.print("/slipway/agents", log.Revision+"/Main/a", 3)
	page, err = reader.Read(t.Context(), log, revisionlog.Query{Limit: 10, After: page.Next})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Message != "a 3" {
		t.Fatalf("got %+v, %v", page, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r, log := newRecorded(t), revisionlog.Log{Revision: id.New(noon), Kind: revisionlog.Build}
	refuse := func(code string) {
		r.refuse = func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type": %q, "message": "no"}`, code)
			return true
		}
	}
	refuse("ResourceNotFoundException")
	if page, err := r.reader().Read(t.Context(), log, revisionlog.Query{Limit: 10}); err != nil || len(page.Lines) > 0 || page.More {
		t.Errorf("a stream that is not there: got %+v, %v", page, err)
	}
	refuse("AccessDeniedException")
	if _, err := r.reader().Read(t.Context(), log, revisionlog.Query{Limit: 10}); err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
		t.Errorf("got %v", err)
	}
	for _, after := range []string{"x", "1", "-1-2", "1-", "x-1"} {
		if _, err := r.reader().Read(t.Context(), log, revisionlog.Query{Limit: 10, After: after}); !errors.Is(err, revisionlog.ErrPosition) {
			t.Errorf("behind %q: got %v", after, err)
		}
	}
	if _, err := r.reader().Read(t.Context(), revisionlog.Log{Revision: "*", Kind: revisionlog.Build}, revisionlog.Query{Limit: 1}); err == nil {
		t.Error("what is not an id is looked for")
	}
}
