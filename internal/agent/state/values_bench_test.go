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
			v := messages(b, n)
			var following state.Values
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%100 == 0 {
					b.StopTimer()
					following = reduce(b, v, `{"messages":[{"type":"remove","id":"m0"}]}`)
					b.StartTimer()
				}
				following = reduce(b, following, message(n+i))
			}
		})
	}
}

// BenchmarkReplace reports a whole state that has one message more.
func BenchmarkReplace(b *testing.B) {
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := messages(b, n)
			short, long := v.JSON(), reduce(b, v, message(n)).JSON()
			b.ReportAllocs()
			for b.Loop() {
				for _, values := range []json.RawMessage{short, long} {
					var err error
					if v, _, err = v.Replace(values); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReduceRemoves removes all messages of a state, each by its id.
func BenchmarkReduceRemoves(b *testing.B) {
	for _, n := range []int{200, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v := messages(b, n)
			update := `{"messages":[{"type":"remove","id":"m0"}`
			for i := range n - 1 {
				update += fmt.Sprintf(`,{"type":"remove","id":"m%d"}`, i+1)
			}
			update += "]}"
			b.ReportAllocs()
			for b.Loop() {
				reduce(b, v, update)
			}
		})
	}
}

// messages returns a state of n messages.
func messages(b *testing.B, n int) (v state.Values) {
	for i := range n {
		v = reduce(b, v, message(i))
	}
	return v
}

func message(i int) string {
	return fmt.Sprintf(`{"messages":[{"type":"ai","id":"m%d","content":"The weather is fine today.","additional_kwargs":{},"response_metadata":{}}]}`, i)
}
