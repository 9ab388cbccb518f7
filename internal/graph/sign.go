package graph

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Names of the platform's own headers, in canonical form.
const (
	headerRevision  = "X-Slipway-Revision"
	headerSignature = "X-Slipway-Signature"
)

// sign returns the signature of a body that is sent now. The HMAC is over the body's hash, so that an agent can hash the body while it arrives, and
// check many tokens or times without reading it again.
func sign(token string, now time.Time, body []byte) string {
	at, hash := strconv.FormatInt(now.Unix(), 10), sha256.Sum256(body)
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(at + "." + hex.EncodeToString(hash[:])))
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
