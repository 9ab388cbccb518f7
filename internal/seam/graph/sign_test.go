package graph_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/graph"
)

// verify does the check that the contract describes for an agent. It returns why the agent
// would refuse the request.
func verify(token string, header http.Header, now time.Time) error {
	fields := map[string]string{}
	for pair := range strings.SplitSeq(header.Get("X-Slipway-Signature"), ",") {
		name, value, _ := strings.Cut(pair, "=")
		fields[name] = value
	}
	at, err := strconv.ParseInt(fields["t"], 10, 64)
	if err != nil {
		return fmt.Errorf("signature %q has no time", header.Get("X-Slipway-Signature"))
	}
	if age := now.Sub(time.Unix(at, 0)); age.Abs() > 5*time.Minute {
		return fmt.Errorf("it was signed %s ago", age)
	}
	mac := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(mac, "%s.%s", fields["t"], fields["n"])
	got, err := hex.DecodeString(fields["v1"])
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return fmt.Errorf("signature %q is another nonce's or token's", fields["v1"])
	}
	return nil
}

func TestAnInvocationIsSignedForItsRevision(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 2)
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{}`)
	})
	endpoint.Token, endpoint.Revision = "secret", "v1"
	invoke(t, endpoint, graph.Invocation{Graph: "agent"})
	header := <-headers
	if got := header["X-Slipway-Revision"]; len(got) != 1 || got[0] != "v1" {
		t.Errorf("got revision %q", got)
	}
	now := time.Now()
	if err := verify("secret", header, now); err != nil {
		t.Errorf("signature %q: %v", header.Get("X-Slipway-Signature"), err)
	}
	other := header.Clone()
	other.Set("X-Slipway-Signature", strings.Replace(header.Get("X-Slipway-Signature"), ",n=", ",n=A", 1))
	for name, refused := range map[string]error{
		"another token":    verify("other", header, now),
		"another nonce":    verify("secret", other, now),
		"an earlier one":   verify("secret", header, now.Add(6*time.Minute)),
		"a clock far back": verify("secret", header, now.Add(-6*time.Minute)),
	} {
		if refused == nil {
			t.Errorf("%s: an agent could not tell", name)
		}
	}
	invoke(t, endpoint, graph.Invocation{Graph: "agent"})
	if again := (<-headers).Get("X-Slipway-Signature"); again == header.Get("X-Slipway-Signature") {
		t.Errorf("two invocations are both signed %q, so that an agent could not refuse one that is sent again", again)
	}
}

func TestAnAgentWithoutATokenGetsNoSignature(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Authorization", "X-Slipway-Signature", "X-Slipway-Revision"} {
			if got, ok := r.Header[name]; ok {
				t.Errorf("got %s %q, want none", name, got)
			}
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{}`)
	})
	invoke(t, endpoint, graph.Invocation{Graph: "agent"})
}
