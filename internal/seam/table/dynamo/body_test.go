package dynamo_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestBodiesAreSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, chunks int }{
		{0, 0}, {dynamo.InlineBody, 0}, {dynamo.InlineBody + 1, 1}, {dynamo.ChunkSize, 1}, {dynamo.ChunkSize + 1, 2}, {26 * dynamo.ChunkSize, 26},
	} {
		body := make([]byte, c.size)
		for i := range body {
			body[i] = byte(i>>8 ^ i>>16)
		}
		w := newWire(t, done)
		check.Must(t, w.open().Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a"), Body: body}}))
		var got []byte
		chunks := 0
		for _, r := range w.sent() {
			for _, part := range sentChunks(t, r) {
				got = append(got, part...)
				chunks++
			}
		}
		if chunks != c.chunks {
			t.Errorf("body of %d bytes: got %d chunks, want %d", c.size, chunks, c.chunks)
		}
		if c.chunks > 0 && !bytes.Equal(got, body) {
			t.Errorf("body of %d bytes: got other bytes", c.size)
		}
	}
}

// sentChunks returns the bodies in a BatchWriteItem.
func sentChunks(t *testing.T, r request) [][]byte {
	t.Helper()
	if r.operation != "BatchWriteItem" {
		return nil
	}
	var bodies [][]byte
	tables, _ := r.decode(t)["RequestItems"].(map[string]any)
	for _, write := range tables["slipway"].([]any) {
		put, _ := write.(map[string]any)["PutRequest"].(map[string]any)
		stored, _ := put["Item"].(map[string]any)
		body, ok := stored["body"].(map[string]any)
		if !ok {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(body["B"].(string))
		check.Must(t, err)
		bodies = append(bodies, decoded)
	}
	return bodies
}

func TestChunksThatWereLeftOutAreWrittenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := reply(http.StatusOK, `{"UnprocessedItems":{"slipway":[{"PutRequest":{"Item":{"pk":{"S":"left"},"sk":{"S":"CHUNK"}}}}]}}`)
		w := newWire(t, left, left, done, done)
		err := w.open().Transact(t.Context(), table.Put{Item: table.Item{Key: key("p", "a"), Body: make([]byte, dynamo.ChunkSize)}})
		check.Must(t, err)
		w.wantOperations("BatchWriteItem", "BatchWriteItem", "BatchWriteItem", "TransactWriteItems")
		for _, again := range w.sent()[1:3] {
			if !bytes.Contains(again.body, []byte(`"left"`)) || bytes.Contains(again.body, []byte("BODY-CLAIMS#")) {
				t.Errorf("got %s, want only what was left out", again.body)
			}
		}
	})
}

// TestWaitingEndsBeforeTheDeadline: also between the parts of a batch.
func TestWaitingEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, batch([]table.Key{key("p", "a")}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.open().GetBatch(ctx, key("p", "a"))
		wantBusy(t, err)
		if ctx.Err() != nil {
			t.Error("got the answer after the deadline")
		}
	})
}

func TestDelaysGrowToALimit(t *testing.T) {
	t.Parallel()
	for attempt := 1; attempt <= 100; attempt++ {
		limit := 2 * time.Second
		if attempt < 7 {
			limit = 25 * time.Millisecond << (attempt - 1)
		}
		for range 100 {
			if got := dynamo.Delay(attempt); got < 0 || got >= limit {
				t.Fatalf("attempt %d: got a delay of %v, want less than %v", attempt, got, limit)
			}
		}
	}
}

func TestClaimsAreSwept(t *testing.T) {
	t.Parallel()
	shards := make(map[string]bool)
	for _, shard := range dynamo.ClaimPartitions() {
		shards[shard] = true
	}
	for range 1000 {
		if got := dynamo.NewClaimKey(time.Now()); !shards[got.PK] {
			t.Fatalf("got a claim in %s, where none is looked for", got.PK)
		}
	}
}
