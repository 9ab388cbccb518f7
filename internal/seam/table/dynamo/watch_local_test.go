//go:build dynamo

package dynamo_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
)

// idling passes requests on, and reports each look at idle keys that was answered.
type idling struct{ looks chan struct{} }

func (c idling) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := local.http.Do(r)
	if bytes.Contains(body, []byte("ProjectionExpression")) {
		c.looks <- struct{}{}
	}
	return answer, err
}

// TestAWatchThatIsIdleSeesAnotherProcess: DynamoDB answers looks at idle keys so that each kind of
// write of another process is seen, and nothing else.
func TestAWatchThatIsIdleSeesAnotherProcess(t *testing.T) {
	t.Parallel()
	name, a := tableName(t.TempDir()), key("p", "a")
	create(t, name)
	client := idling{looks: make(chan struct{}, 100)}
	tb, other := dynamo.Open(configure(client), name), dynamo.Open(configure(local.http), name)
	t.Cleanup(func() { wantError(t, tb.Close(), nil) })
	for _, write := range []table.Write{
		table.Put{Item: table.Item{Key: a, Attrs: table.Attrs{"n": int64(1)}}},
		table.Update{Key: a, Add: map[string]int64{"n": 1}},
		table.Delete{Key: a},
	} {
		watcher := tb.Watch(a)
		<-watcher.C()
		for len(client.looks) > 0 {
			<-client.looks
		}
		<-client.looks
		<-client.looks
		select {
		case <-watcher.C():
			t.Error("woken without a change")
		default:
		}
		wantError(t, other.Transact(t.Context(), write), nil)
		select {
		case <-watcher.C():
		case <-time.After(time.Minute):
			t.Errorf("not woken after %T", write)
		}
		if item := watcher.Item(); item != nil {
			t.Errorf("got %v with the wake-up, want no item", item)
		}
		watcher.Stop()
	}
}
