package graph

import (
	"testing"
	"time"
)

// TestSignatureOfAKnownRequest has a signature with which writers of an agent can check their
// own code:
//
//	printf '%s' '1700000000.NONCE' | openssl dgst -sha256 -hmac secret
func TestSignatureOfAKnownRequest(t *testing.T) {
	t.Parallel()
	const want = "t=1700000000,n=NONCE,v1=aabc4f3f865788fba641a21fade7e5be5ca329c2733b8b020d399e3798dbc224"
	if got := sign("secret", time.Unix(1_700_000_000, 0), "NONCE"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
