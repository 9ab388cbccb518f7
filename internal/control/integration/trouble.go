package integration

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// trouble turns a failed call to GitHub into a fault, or into an error for the operator when
// the failure is the server's own: a key that GitHub does not accept. account names the
// installation to people.
func (g *github) trouble(err error, account string) error {
	answer := refused(err)
	switch {
	case err == nil:
		return nil
	case answer.code == 0:
		return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "GitHub cannot be reached, or does not answer as it should. Try again later."), err)
	case answer.limited():
		return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "GitHub takes no more requests at present%s.", g.patience(answer)), err)
	case answer.code >= http.StatusInternalServerError:
		return fmt.Errorf("%w (%w)", fault.New(fault.Unavailable, "GitHub answered with status %d. Try again later.", answer.code), err)
	case answer.code == http.StatusForbidden && said(err, "suspended"):
		return fault.New(fault.Conflict, "The GitHub App's installation of %s is suspended. Resume it in the settings of %s at GitHub, and try again.", account, account)
	case answer.code == http.StatusNotFound:
		return fault.New(fault.Conflict, "The GitHub App is not installed at %s any more. Install it again: deployments go on with the same integration.", account)
	case answer.code == http.StatusForbidden:
		return fault.New(fault.Conflict, "GitHub does not let the App do this at %s. An owner of it may have to accept the App's permissions.", account)
	default:
		return fmt.Errorf("call GitHub: %w", err)
	}
}

// limited reports whether GitHub demands fewer requests.
func (r refusal) limited() bool {
	switch r.code {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return r.header.Get("Retry-After") != "" || r.header.Get("X-Ratelimit-Remaining") == "0"
	default:
		return false
	}
}

// patience says when GitHub accepts requests again, if GitHub has said so.
func (g *github) patience(answer refusal) string {
	if seconds, err := strconv.Atoi(answer.header.Get("Retry-After")); err == nil && seconds > 0 {
		return fmt.Sprintf("; try again in %s", time.Duration(seconds)*time.Second)
	}
	if reset, err := strconv.ParseInt(answer.header.Get("X-Ratelimit-Reset"), 10, 64); err == nil {
		if wait := time.Unix(reset, 0).Sub(g.now()).Round(time.Second); wait > 0 {
			return fmt.Sprintf("; try again in %s", wait)
		}
	}
	return "; try again later"
}
