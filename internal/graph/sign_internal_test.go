package graph

import (
	"bytes"
	"testing"
	"time"
)

// TestSignatureOfAKnownRequest lets those who write an agent check theirs:
//
//	printf '%s' '{}' | openssl dgst -sha256
//	printf '%s' '1700000000.44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a' | openssl dgst -sha256 -hmac secret
func TestSignatureOfAKnownRequest(t *testing.T) {
	t.Parallel()
	const want = "t=1700000000,v1=377ae4146b350a16b513a497649c58629f6d1d389599ab561872ab8099ced859"
	if got := sign("secret", time.Unix(1_700_000_000, 0), []byte("{}")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func BenchmarkSign(b *testing.B) {
	for name, size := range map[string]int{"1 KB": 1 << 10, "100 KB": 100 << 10} {
		b.Run(name, func(b *testing.B) {
			body := bytes.Repeat([]byte("x"), size)
			b.ReportAllocs()
			for b.Loop() {
				sign("0123456789abcdef0123456789abcdef", time.Now(), body)
			}
		})
	}
}
