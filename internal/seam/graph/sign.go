package graph

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Names of the platform's own headers, in canonical form.
const (
	headerRevision  = "X-Slipway-Revision"
	headerSignature = "X-Slipway-Signature"
)

// identify sets the headers that name the agent and prove that the platform asks it. The header
// authorization gets the token.
func identify(header http.Header, endpoint compute.Endpoint, authorization string) {
	if endpoint.Revision != "" {
		header[headerRevision] = []string{endpoint.Revision}
	}
	if endpoint.Token != "" {
		header[authorization] = []string{"Bearer " + endpoint.Token}
		header[headerSignature] = []string{signNow(endpoint.Token)}
	}
}

// signNow returns the signature of an invocation that is sent now. No other invocation has the
// same signature. The signature does not cover the body: a party that could change the body on
// its way also reads the token beside it and could sign again. And hashing a long thread's
// state would take both sides longer than most other work on it.
func signNow(token string) string { return sign(token, time.Now(), rand.Text()) }

func sign(token string, now time.Time, nonce string) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(at + "." + nonce))
	return "t=" + at + ",n=" + nonce + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
