package controlplane

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
)

// page is what a user sees in the browser at the end of an authorization. It describes the
// outcome, or asks. Apart from Action, it contains no part of the address that it came to, because
// that address has a code and a state in it.
type page struct {
	Title, Text string
	// Detail is the message of the provider.
	Detail string
	// Button, if it is set, sends a POST to Action, or to the page's own address if Action is "".
	Button, Action string
	status         int
}

const notConnected = "Not connected"

var installedPage = page{
	Title: "Installed", Text: "The installation is saved. Close this window and go on where you came from.", status: http.StatusOK,
}

func outcomePage(o authservice.Outcome) page {
	if o.Error == "" {
		return page{Title: "Connected", Text: "The account is connected. You can close this window.", status: http.StatusOK}
	}
	p := page{
		Title: notConnected, Text: "The account was not connected. Close this window and start again where you came from.",
		Detail: o.Error, status: http.StatusOK,
	}
	if o.ErrorDescription != "" {
		p.Detail += ": " + o.ErrorDescription
	}
	return p
}

// refusedPage shows a fault to the user in front of the browser.
func refusedPage(err error) (page, error) {
	if f, known := errors.AsType[*fault.Error](err); known {
		return page{Title: notConnected, Text: f.Message, status: web.Status(f)}, nil
	}
	return page{}, err
}

// checkSender refuses a confirmation that another page than this server's has sent.
func checkSender(secFetchSite *string) error {
	if from := value(secFetchSite); from != "" && from != "same-origin" {
		return fault.New(fault.Forbidden, "This has to be confirmed on the page of this server.")
	}
	return nil
}

var (
	// pageText has a mark for each text that is filled in. It is not a template of
	// html/template: html/template finds methods by name, and a linker that sees this keeps
	// every method of every SDK in the program.
	//go:embed auth_page.html
	pageText string
	//go:embed auth_page.css
	pageStyle string
	// pagePolicy allows the page its style and nothing else: no script, no image, no frame
	// around it, and no form unless it has a button.
	pagePolicy = "default-src 'none'; style-src 'sha256-" + styleSum() + "'; base-uri 'none'; frame-ancestors 'none'; form-action "
)

func styleSum() string {
	sum := sha256.Sum256([]byte(pageStyle))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// VisitAuthCallbackResponse implements AuthCallbackResponseObject.
func (p page) VisitAuthCallbackResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitAuthSetupResponse implements AuthSetupResponseObject.
func (p page) VisitAuthSetupResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitConfirmAuthResponse implements ConfirmAuthResponseObject.
func (p page) VisitConfirmAuthResponse(w http.ResponseWriter) error { return p.write(w) }

func (p page) write(w http.ResponseWriter) error {
	detail := ""
	if p.Detail != "" {
		detail = "<p><code>" + html.EscapeString(p.Detail) + "</code></p>"
	}
	button, forms := "", "'none'"
	if p.Button != "" {
		action := ""
		if p.Action != "" {
			action = ` action="` + html.EscapeString(p.Action) + `"`
		}
		button, forms = `<form method="post"`+action+"><button>"+html.EscapeString(p.Button)+"</button></form>", "'self'"
	}
	text := strings.NewReplacer(
		"[style]", pageStyle, "[title]", html.EscapeString(p.Title), "[text]", html.EscapeString(p.Text), "[detail]", detail, "[button]", button,
	).Replace(pageText)
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", pagePolicy+forms)
	header.Set("X-Content-Type-Options", "nosniff")
	// The address stays hidden from the next page and from caches.
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", web.NoStore)
	w.WriteHeader(p.status)
	_, err := io.WriteString(w, text)
	return err
}
