package authservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/outbound"
)

// Limits of the work that a provider may cause in the service.
const (
	defaultTimeout = 15 * time.Second
	// maxAnswer is how large the body of a provider's answer may be. The body of a token
	// endpoint's answer has a few thousand bytes.
	maxAnswer = 256 << 10
	// maxWords is how much of a provider's own error text is kept.
	maxWords = 300
)

// checkURL returns a fault.Invalid unless the service may call the URL.
func (s *Service) checkURL(field, raw string) error {
	return outbound.CheckURL(field, raw, s.Private)
}

// calls returns a context for the calls of one request to providers: all its calls together
// may take as long as one call may take.
func (s *Service) calls(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.Timeout)
}

// failure says why a provider gave no token, in a text that contains no secret that the
// provider received or sent. Nothing else is kept of an error of the protocol, because the
// libraries' errors quote URLs and bodies.
type failure struct {
	// code is the error code of RFC 6749, or an error code of this package.
	code string
	// words explain it to a person.
	words string
	// temporary says that the same request may succeed later.
	temporary bool
}

func (f *failure) Error() string { return f.code + ": " + f.words }

// Codes of failures that are not the provider's own.
const (
	codeUnreachable = "provider_unreachable"
	codeUnusable    = "provider_answer_unusable"
)

// failed makes a failure from an error of a request to a provider. The failure's words must
// not repeat the secrets.
func failed(err error, secrets ...string) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return answered(refused.Response.StatusCode, refused.ErrorCode, refused.ErrorDescription, secrets)
	}
	netError, isNet := errors.AsType[net.Error](err)
	_, isDial := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, outbound.ErrAddress):
		return &failure{code: codeUnreachable, words: "The provider's address is not a public one."}
	case errors.Is(err, context.DeadlineExceeded) || isNet && netError.Timeout():
		return &failure{code: codeUnreachable, words: "The provider did not answer in time.", temporary: true}
	case errors.Is(err, outbound.ErrTooLarge), strings.Contains(err.Error(), outbound.ErrTooLarge.Error()):
		// Package oauth2 keeps only an error's text.
		return &failure{code: codeUnusable, words: "The provider's answer is too large.", temporary: true}
	case isDial, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, context.Canceled):
		return &failure{code: codeUnreachable, words: "The provider cannot be reached.", temporary: true}
	default:
		return &failure{code: codeUnusable, words: "The provider's answer is not what OAuth asks for.", temporary: true}
	}
}

// troubles are the codes of temporary failures: those of RFC 6749, section 4.1.2.1, and Slack's.
var troubles = []string{
	"temporarily_unavailable", "server_error",
	"internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited",
}

// answered makes a failure from an error answer.
func answered(status int, code, description string, secrets []string) *failure {
	code = plain(code, secrets)
	switch {
	case code == "" && (status >= http.StatusInternalServerError || status == http.StatusTooManyRequests):
		return &failure{code: codeUnreachable, words: fmt.Sprintf("The provider answered with status %d.", status), temporary: true}
	case code == "":
		return &failure{code: codeUnusable, words: fmt.Sprintf("The provider answered with status %d and no OAuth error.", status), temporary: true}
	}
	temporary := status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || slices.Contains(troubles, code)
	return &failure{code: code, words: plain(description, secrets), temporary: temporary}
}

// plain returns a provider's error text in a form that may be shown: it is cut, contains only
// characters that RFC 6749 allows in it, and is empty if it repeats a secret.
func plain(words string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" && strings.Contains(words, secret) {
			return ""
		}
	}
	words = strings.Map(func(r rune) rune {
		if r < 0x20 || r == '"' || r == '\\' || r > 0x7e {
			return ' '
		}
		return r
	}, words)
	return strings.TrimSpace(words[:min(len(words), maxWords)])
}
