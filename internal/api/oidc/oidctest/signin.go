package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// ClientID is the id of the public client that signs people in.
const ClientID = "slipway-people"

const (
	// interval is how long a device must wait between two polls.
	interval = time.Second
	// slowdown is how much longer it must wait after a slow_down.
	slowdown = 5 * time.Second
	// tolerance is how much too early a poll may arrive, as timers are not exact.
	tolerance = 100 * time.Millisecond
)

// signIns is what the issuer knows of sign-ins. The lock of the issuer guards it.
type signIns struct {
	person  map[string]any
	codes   map[string]code
	devices map[string]*device
	// refresh holds the refresh tokens that are valid.
	refresh map[string]bool
	// refreshes counts the requests with a refresh token.
	refreshes int
	// shown receives each new code of a device.
	shown chan string
	// hasty counts the polls that were answered with slow_down.
	hasty int
	// demand makes the next poll of each device be answered with slow_down.
	demand bool
	// silent makes the next poll of a device get no answer.
	silent bool
}

// code is an authorization code that is not used yet.
type code struct{ redirect, challenge, nonce string }

// device is a code of a device.
type device struct {
	user     string
	lasting  bool
	approved bool
	wait     time.Duration
	polled   time.Time
}

func newSignIns() signIns {
	return signIns{codes: map[string]code{}, devices: map[string]*device{}, refresh: map[string]bool{}, shown: make(chan string, 100)}
}

// SetPerson sets the claims of the person who signs in; nil means that the person refuses.
func (i *Issuer) SetPerson(claims map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.person = claims
}

// SlowDown has the next poll of a device answered with slow_down.
func (i *Issuer) SlowDown() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.demand = true
}

// Silence has the next poll of a device get no answer.
func (i *Issuer) Silence() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.silent = true
}

// Hasty is how many polls came too early, apart from the polls of SlowDown.
func (i *Issuer) Hasty() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hasty
}

// Refreshable is how many refresh tokens are valid.
func (i *Issuer) Refreshable() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.refresh)
}

// Refreshes is how many requests with a refresh token the issuer got since the last call.
func (i *Issuer) Refreshes() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.refreshes
	i.refreshes = 0
	return n
}

// Forget makes all refresh tokens invalid, as an administrator who blocks the person does.
func (i *Issuer) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.refresh)
}

// Shown is the next code that a device shows to its person.
func (i *Issuer) Shown() <-chan string { return i.shown }

// Approve acts as the person who enters the code that a device shows.
func (i *Issuer) Approve(user string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range i.devices {
		d.approved = d.approved || d.user == user
	}
}

// authorize sends a browser back with a code, without asking the person.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	back, err := url.Parse(query.Get("redirect_uri"))
	if err != nil || query.Get("client_id") != ClientID || query.Get("response_type") != "code" || query.Get("code_challenge_method") != "S256" {
		http.Error(w, "a bad request of a client", http.StatusBadRequest)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	answer := url.Values{"state": {query.Get("state")}}
	if i.person == nil {
		answer.Set("error", "access_denied")
	} else {
		authCode := rand.Text()
		i.codes[authCode] = code{query.Get("redirect_uri"), query.Get("code_challenge"), query.Get("nonce")}
		answer.Set("code", authCode)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// device gives a device a code.
func (i *Issuer) device(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") != ClientID {
		i.refuse(w, "invalid_client")
		return
	}
	code, user := rand.Text(), rand.Text()[:8]
	i.mu.Lock()
	i.devices[code] = &device{user: user, lasting: strings.Contains(r.PostFormValue("scope"), "offline_access"), wait: interval, polled: time.Now()}
	i.mu.Unlock()
	i.answer(w, map[string]any{
		"device_code": code, "user_code": user, "expires_in": 60, "interval": interval.Seconds(),
		"verification_uri": i.URL + "/enter", "verification_uri_complete": i.URL + "/enter?user_code=" + user,
	})
	i.shown <- user
}

// exchange answers a code of a browser or of a device, or a refresh token, with tokens.
func (i *Issuer) exchange(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") != ClientID {
		i.refuse(w, "invalid_client")
		return
	}
	claims, lasting, refusal := i.redeem(r)
	if refusal != "" {
		i.refuse(w, refusal)
		return
	}
	tokens := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 60, "id_token": i.IDToken(time.Now(), claims)}
	if lasting {
		refresh := rand.Text()
		tokens["refresh_token"] = refresh
		i.mu.Lock()
		i.refresh[refresh] = true
		i.mu.Unlock()
	}
	i.answer(w, tokens)
}

// redeem uses up what the request offers, and returns further claims of its ID token, and whether
// a refresh token goes with it.
func (i *Issuer) redeem(r *http.Request) (claims map[string]any, lasting bool, refusal string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		used, ok := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !ok || used.redirect != r.PostFormValue("redirect_uri") || used.challenge != base64.RawURLEncoding.EncodeToString(challenge[:]) {
			return nil, false, "invalid_grant"
		}
		return map[string]any{"nonce": used.nonce}, false, ""
	case "urn:ietf:params:oauth:grant-type:device_code":
		lasting, refusal = i.poll(r.PostFormValue("device_code"))
		return nil, lasting, refusal
	case "refresh_token":
		i.refreshes++
		if !i.refresh[r.PostFormValue("refresh_token")] {
			return nil, false, "invalid_grant"
		}
		delete(i.refresh, r.PostFormValue("refresh_token"))
		return nil, true, ""
	default:
		return nil, false, "unsupported_grant_type"
	}
}

// poll answers the poll of a device: without a refusal if the person has approved it.
func (i *Issuer) poll(text string) (lasting bool, refusal string) {
	if i.silent {
		i.silent = false
		panic(http.ErrAbortHandler)
	}
	d := i.devices[text]
	if d == nil {
		return false, "expired_token"
	}
	early := time.Since(d.polled) < d.wait-tolerance
	d.polled = time.Now()
	switch {
	case early || i.demand:
		if !i.demand {
			i.hasty++
		}
		i.demand = false
		d.wait += slowdown
		return false, "slow_down"
	case i.person == nil:
		return false, "access_denied"
	case !d.approved:
		return false, "authorization_pending"
	}
	delete(i.devices, text)
	return d.lasting, ""
}

func (i *Issuer) revoke(_ http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.refresh, r.PostFormValue("token"))
}

func (i *Issuer) refuse(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	i.answer(w, map[string]string{"error": reason})
}

// IDToken is a token of the person for the client, with further claims.
func (i *Issuer) IDToken(now time.Time, claims map[string]any) string {
	i.t.Helper()
	return i.sign(now, "JWT", i.ofPerson(claims))
}

// OtherToken is a token of the person of another type than an ID token, for the same client.
func (i *Issuer) OtherToken(now time.Time, kind jose.ContentType) string {
	i.t.Helper()
	return i.sign(now, kind, i.ofPerson(nil))
}

func (i *Issuer) ofPerson(claims map[string]any) map[string]any {
	all := map[string]any{"aud": ClientID}
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.Copy(all, i.person)
	maps.Copy(all, claims)
	return all
}
