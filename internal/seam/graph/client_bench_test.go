package graph_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/graph"
)

// BenchmarkInvoke invokes an agent that only reads the body and sends a fixed answer: three
// updates and the named number of tokens. The figures include both ends of the connection.
func BenchmarkInvoke(b *testing.B) {
	for _, tokens := range []int{0, 30} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) { benchmarkInvoke(b, tokens) })
	}
}

func benchmarkInvoke(b *testing.B, tokens int) {
	update := "event: updates\ndata: {\"model\":{\"messages\":[{\"type\":\"ai\",\"id\":\"m1\",\"content\":\"It is foggy.\"}]}}\n\n"
	token := "event: messages\ndata: [{\"type\":\"AIMessageChunk\",\"id\":\"m1\",\"content\":\"tok \"},{\"node\":\"model\"}]\n\n"
	answer := []byte(strings.Repeat(update, 3) + strings.Repeat(token, tokens))
	endpoint := serve(b, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.Write(answer)
	})
	client := newClient(b)
	invocation := ask("weather in sf?", "{}", "messages")
	b.ReportAllocs()
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			stream, err := client.Invoke(b.Context(), endpoint, invocation)
			if err != nil {
				b.Error(err)
				return
			}
			if events, err := readAll(stream); err != nil || len(events) != 3+tokens {
				b.Errorf("got %d events, %v", len(events), err)
			}
			if err := stream.Close(); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkStream reads a stream without the cost of invocations: per operation one token, or one
// state of a megabyte.
func BenchmarkStream(b *testing.B) {
	for name, data := range map[string]string{
		"token": `[{"type":"AIMessageChunk","id":"m1","content":"tok "},{"node":"model"}]`, "1MB": `"` + strings.Repeat("x", 1<<20-2) + `"`,
	} {
		b.Run(name, func(b *testing.B) {
			frame := []byte("event: messages\ndata: " + data + "\n\n")
			endpoint := serve(b, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for range b.N {
					if _, err := w.Write(frame); err != nil {
						b.Error(err)
						return
					}
				}
			})
			stream := invoke(b, endpoint, graph.Invocation{Graph: "agent", Config: json.RawMessage("{}")})
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			b.ResetTimer()
			if events, err := readCount(stream); err != nil || events != b.N {
				b.Errorf("got %d events, %v", events, err)
			}
		})
	}
}

func readCount(stream *graph.Stream) (int, error) {
	for n := 0; ; n++ {
		if _, err := stream.Next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}
