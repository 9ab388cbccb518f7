// Package console serves the page in which people watch deployments and talk to agents, and
// signs people in to that page.
//
// The page is static: ES modules with Lit, embedded from the folder static, without a build
// step. It calls the same interface as every other client, so it can do nothing that the
// interface does not allow. No API key is in the page. `slipway open` asks for a code with the
// key of a person (POST /console/codes); the page exchanges the code for a session (POST
// /console/session). The session's token is a cookie that scripts cannot read. Its proof is in
// the answer: the page keeps it for its own origin, and sends it in a custom header, which no
// page of another origin can send. Browsers send a cookie to all ports of a host, so the
// cookie alone gives no access.
package console

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/session"
)

//go:embed static
var static embed.FS

// policy lets the page load from its own origin only, and run no script except its files.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxBody is how large the body of a sign-in may be, in bytes.
const maxBody = 1 << 10

// types are the media types of the files, by the endings of their names.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// Config holds the settings and dependencies of the console.
type Config struct {
	Authenticator auth.Authenticator
	Sessions      *session.Store
	// BaseURL is the address of the server.
	BaseURL string
	Cookies auth.SessionCookies
}

// Register serves the console at /console/, and sends browsers there from the root.
func Register(mux *web.Mux, config Config) {
	c := console{config, mux}
	toConsole := http.RedirectHandler("/console/", http.StatusTemporaryRedirect)
	mux.Handle("GET /{$}", toConsole)
	mux.Handle("GET /console", toConsole)
	mux.Handle("POST /console/codes", mux.Answering(c.makeCode))
	mux.Handle("POST /console/session", mux.Answering(c.open))
	mux.Handle("DELETE /console/session", mux.Answering(c.close))
	for name, file := range files() {
		mux.Handle("GET /console/"+name, web.Serve(func() web.File { return file }))
	}
}

// files returns the files of the folder static, by path; the page itself is under "{$}".
func files() map[string]web.File {
	served := map[string]web.File{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		mediaType := types[path.Ext(name)]
		if err != nil || entry.IsDir() || mediaType == "" {
			return err
		}
		body, err := static.ReadFile(name)
		file, at := web.File{Body: body, Type: mediaType}, strings.TrimPrefix(name, "static/")
		if at == "index.html" {
			file.ContentPolicy, at = policy, "{$}"
		}
		served[at] = file
		return err
	})
	if err != nil {
		panic(err) // embedded files are always readable
	}
	return served
}

type console struct {
	Config

	mux *web.Mux
}

// code is the answer to POST /console/codes.
type code struct {
	Code      string `json:"code"`
	ExpiresAt string `json:"expires_at"`
	// URL opens the console and signs in. The code is in the fragment, which browsers do not
	// send.
	URL string `json:"url"`
}

// makeCode answers the holder of an API key with a code for a browser.
func (c console) makeCode(w http.ResponseWriter, r *http.Request) error {
	caller, err := auth.Tenant(c.Authenticator, r)
	if err != nil {
		return err
	}
	if r.Header.Get(auth.HeaderKey) == "" && r.Header.Get(auth.HeaderBearer) == "" {
		return fault.New(fault.Forbidden, "A code needs an API key. A session cannot open another session.")
	}
	text, expires, err := c.Sessions.Code(r.Context(), caller)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(code{text, clock.Format(expires), c.BaseURL + "/console/#/sign-in/" + text})
}

// opened is the answer to POST /console/session.
type opened struct {
	// Proof is the half of the session that the page keeps.
	Proof string `json:"proof"`
}

// open exchanges a code for a session.
func (c console) open(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get(auth.HeaderConsole) == "" {
		return fault.New(fault.Forbidden, "The header %s is missing.", auth.HeaderConsole)
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return fault.New(fault.Forbidden, "A page of another origin may not sign in to the console.")
	}
	var sent struct {
		Code string `json:"code"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&sent); err != nil || sent.Code == "" {
		return fault.New(fault.Invalid, `The body must be a JSON object with the field "code".`)
	}
	binder := c.Cookies.BinderOf(r)
	credentials, err := c.Sessions.Open(r.Context(), sent.Code, binder)
	if err != nil {
		return err
	}
	if binder != "" {
		http.SetCookie(w, c.Cookies.Binder("", 0))
	}
	http.SetCookie(w, c.Cookies.Cookie(credentials.Token, session.Life))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	return json.NewEncoder(w).Encode(opened{credentials.Proof})
}

// close ends the session whose two halves the request carries, and removes the cookie.
func (c console) close(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get(auth.HeaderConsole) == "" {
		return fault.New(fault.Forbidden, "The header %s is missing.", auth.HeaderConsole)
	}
	if token, proof, ok := c.Cookies.Session(r); ok {
		if err := c.Sessions.Close(context.WithoutCancel(r.Context()), token, proof); err != nil {
			return err
		}
	}
	http.SetCookie(w, c.Cookies.Cookie("", 0))
	w.WriteHeader(http.StatusNoContent)
	return nil
}
