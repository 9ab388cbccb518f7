package state_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/state"
)

// BenchmarkReduceAppends appends one message to states of different length.
func BenchmarkReduceAppends(b *testing.B) {
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := new(state.Values)
			for i := range n {
				reduce(b, v, message(i))
			}
			b.ReportAllocs()
			for b.Loop() {
				reduce(b, v, message(n))
				b.StopTimer()
				reduce(b, v, fmt.Sprintf(`{"messages":[{"type":"remove","id":"m%d"}]}`, n))
				b.StartTimer()
			}
		})
	}
}

// BenchmarkReplace reports a whole state that has one message more.
func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := new(state.Values)
			for i := range n {
				reduce(b, v, message(i))
			}
			short := append(json.RawMessage(nil), v.JSON()...)
			reduce(b, v, message(n))
			long := append(json.RawMessage(nil), v.JSON()...)
			b.ReportAllocs()
			for b.Loop() {
				for _, values := range []json.RawMessage{short, long} {
					if _, err := v.Replace(values); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func message(i int) string {
	return fmt.Sprintf(`{"messages":[{"type":"ai","id":"m%d","content":"The weather is fine today.","additional_kwargs":{},"response_metadata":{}}]}`, i)
}
