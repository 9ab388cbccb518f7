package graph

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Names of the platform's own headers, in canonical form.
const (
	headerRevision  = "X-Slipway-Revision"
	headerHolds     = "X-Slipway-Holds" // of answers
	headerSignature = "X-Slipway-Signature"
)

// signNow returns the signature of an invocation that is sent now, which no other has. The body is
// not covered: who could change it on its way reads the token beside it and could sign anew, and to
// hash a long thread's state would take both sides longer than most that they do with it.
func signNow(token string) string { return sign(token, time.Now(), rand.Text()) }

func sign(token string, now time.Time, nonce string) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(at + "." + nonce))
	return "t=" + at + ",n=" + nonce + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
