// Package docs serves the documentation of both interfaces as one HTML page.
//
// The page is Swagger UI, from github.com/swaggest/swgui, with its script and style inside.
// The browser loads only one more file, the openapi.json that the server has beside the page,
// so the same page serves the control plane and every agent server. The content security
// policy allows exactly the page's scripts and its style, by their digests.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the page's own markup and script
	"encoding/base64"
	"fmt"
	"io"
	"net/http"

	"github.com/swaggest/swgui/v5/static"

	"github.com/slipway-run/slipway/internal/api/web"
)

var (
	//go:embed page.html
	markup []byte
	//go:embed page.js
	start []byte
	//go:embed page.css
	colours []byte
)

// Register serves the page beside the openapi.json of the control plane, at the root and under
// /api-host. It returns the page, which an agent server has beside its own openapi.json.
func Register(mux *web.Mux) http.Handler {
	page := web.Serve(build)
	for _, base := range []string{"", "/api-host"} {
		mux.Handle("GET "+base+"/docs", page)
	}
	return page
}

// build returns the page and its content security policy.
func build() web.File {
	style, library := append(asset("swagger-ui.css.gz"), colours...), asset("swagger-ui-bundle.js.gz")
	html := bytes.Replace(markup, []byte("/*start*/"), start, 1)
	html = bytes.Replace(html, []byte("/*library*/"), library, 1)
	html = bytes.Replace(html, []byte("/*style*/"), style, 1)
	policy := fmt.Sprintf("default-src 'none'; connect-src 'self'; img-src data:; style-src %s; script-src %s %s; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", digest(style), digest(library), digest(start))
	return web.File{Body: html, Type: "text/html; charset=utf-8", ContentPolicy: policy}
}

// asset returns a file of Swagger UI. It panics if the library does not have the file; a test
// makes sure that this does not happen.
func asset(name string) []byte {
	file, err := static.FS.Open(name)
	if err != nil {
		panic(err)
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil {
		panic(err)
	}
	return text
}

// digest returns the name of a text in a content security policy.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
