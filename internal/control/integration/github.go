package integration

import (
	"cmp"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	api "github.com/google/go-github/v88/github"
	"golang.org/x/oauth2"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
)

// App is a GitHub App as it is registered at GitHub. It needs the permissions contents (read),
// metadata (read) and, for organizations, members (read). Its setup must request the user's
// authorization during installation.
type App struct {
	ID int64 `json:"app_id"`
	// Slug is the App's name in addresses.
	Slug string `json:"slug"`
	// ClientID and ClientSecret are used for the consent of the person who installs the App.
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	// PrivateKey is the RSA key in PEM.
	PrivateKey string `json:"private_key"`
	// WebURL is the address for people and for git, APIURL the address of the API; empty is
	// github.com. GitHub Enterprise: https://HOST and https://HOST/api/v3.
	WebURL string `json:"web_url"`
	APIURL string `json:"api_url"`
	// Transport makes the requests; nil is the default transport.
	Transport http.RoundTripper `json:"-"`
}

// ParseApp reads a GitHub App from the JSON in which operators keep it. The JSON is secret.
// ParseApp ignores other members.
func ParseApp(text []byte) (*App, error) {
	app := new(App)
	if err := json.Unmarshal(text, app); err != nil {
		// The error may quote a secret.
		return nil, errors.New("the GitHub App is not JSON with app_id, slug, client_id, client_secret and private_key")
	}
	return app, nil
}

const (
	// callTimeout bounds one call to GitHub, maxAnswer the size of its answer: a page of
	// repositories has less than a megabyte.
	callTimeout = 15 * time.Second
	maxAnswer   = 8 << 20
)

// github speaks to GitHub.
type github struct {
	id     int64
	slug   string
	key    *rsa.PrivateKey
	now    clock.Clock
	web    *url.URL
	apiURL string
	http   *http.Client
	oauth  oauth2.Config
}

func newGitHub(a App, now clock.Clock) (*github, error) {
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.PrivateKey))
	if err != nil {
		return nil, errors.New("the private key of the GitHub App is not an RSA key in PEM")
	}
	if a.ID == 0 || a.Slug == "" || a.ClientID == "" || a.ClientSecret == "" {
		return nil, errors.New("a GitHub App has an id, a slug, a client id and a client secret")
	}
	web, err := parseAddress("web address", cmp.Or(a.WebURL, "https://github.com"))
	if err != nil {
		return nil, err
	}
	apiURL, err := parseAddress("API's address", cmp.Or(a.APIURL, "https://api.github.com"))
	if err != nil {
		return nil, err
	}
	transport := a.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	return &github{
		id: a.ID, slug: a.Slug, key: key, now: now, web: web, apiURL: apiURL.String() + "/",
		http: &http.Client{Transport: outbound.Limited(transport, maxAnswer), Timeout: callTimeout, CheckRedirect: stayOnHost},
		oauth: oauth2.Config{
			ClientID: a.ClientID, ClientSecret: a.ClientSecret,
			Endpoint: oauth2.Endpoint{TokenURL: web.String() + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams},
		},
	}, nil
}

func parseAddress(what, text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("the " + what + " of the GitHub App must be an https URL")
	}
	return u, nil
}

// installURL returns the address where a person installs the App.
func (g *github) installURL(state string) string {
	folder := "apps"
	if g.web.Host != "github.com" {
		folder = "github-apps"
	}
	return fmt.Sprintf("%s/%s/%s/installations/new?state=%s", g.web, folder, url.PathEscape(g.slug), url.QueryEscape(state))
}

// stayOnHost follows redirects (of renamed repositories) on GitHub's own host only, because
// each request carries a token.
func stayOnHost(next *http.Request, via []*http.Request) error {
	if len(via) > 3 || next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

// as returns the API for the bearer of a token.
func (g *github) as(token string) (*api.Client, error) {
	// The library would delay calls by the machine's clock, for all workspaces at once.
	return api.NewClient(api.WithHTTPClient(g.http), api.WithURLs(&g.apiURL, nil), api.WithAuthToken(token), api.WithDisableRateLimitCheck())
}

// asApp returns the API for the App itself, with a JWT that outlives the call and stays below
// GitHub's limit of ten minutes. The JWT begins a minute ago, because clocks differ.
func (g *github) asApp() (*api.Client, error) {
	now := g.now()
	claims := jwt.RegisteredClaims{
		Issuer: strconv.FormatInt(g.id, 10), IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), ExpiresAt: jwt.NewNumericDate(now.Add(8 * time.Minute)),
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(g.key)
	if err != nil {
		return nil, fmt.Errorf("sign JWT: %w", err)
	}
	return g.as(signed)
}

// plainHost returns a URL's host in lower case, without the default port of https.
func plainHost(u *url.URL) string {
	host := strings.ToLower(u.Host)
	return strings.TrimSuffix(host, ":443")
}

// refusal is GitHub's answer to a request that failed, the zero value without an answer.
type refusal struct {
	code   int
	header http.Header
}

func refused(err error) refusal {
	var answer *http.Response
	if e, ok := errors.AsType[*api.ErrorResponse](err); ok {
		answer = e.Response
	} else if e, ok := errors.AsType[*api.RateLimitError](err); ok {
		answer = e.Response
	} else if e, ok := errors.AsType[*api.AbuseRateLimitError](err); ok {
		answer = e.Response
	} else if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		answer = e.Response
	}
	if answer == nil {
		return refusal{}
	}
	return refusal{answer.StatusCode, answer.Header}
}

// said reports whether GitHub's message about a failure contains a text.
func said(err error, text string) bool {
	e, ok := errors.AsType[*api.ErrorResponse](err)
	return ok && strings.Contains(strings.ToLower(e.Message), text)
}

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
