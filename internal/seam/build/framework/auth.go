package framework

import (
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/base/publicname"
)

// auth reads the path of the repository's own authentication.
func (p *parser) auth() {
	var path, openapi json.RawMessage
	disabled := flag(true)
	if !p.object("auth", `{"path": "./auth.py:auth"}`, map[string]any{
		"path": &path, "disable_studio_auth": &disabled, "openapi": &openapi, "cache": "answers of the repository's own authentication are never kept",
		publicname.KeysPastAuth(): "a key of the platform does not get past the repository's own authentication: remove it, and let the function that authenticates accept these callers",
	}) {
		return
	}
	p.config.Auth = p.variable("auth.path", path)
	if asks(openapi) {
		p.remark("auth.openapi", "has no effect: /openapi.json of an agent server is the same for all agents")
	}
	if !disabled {
		p.remark("auth.disable_studio_auth", "a key of the platform does not get past the repository's own authentication, whatever the value")
	}
}

// encryption reads the path of the repository's own encryption, if the platform asks it.
func (p *parser) encryption() {
	var path json.RawMessage
	if slices.Contains(p.offers, OfferEncryption) && p.config.Language == Python &&
		p.object("encryption", `{"path": "./encryption.py:encryption"}`, map[string]any{"path": &path}) {
		p.config.Encryption = p.variable("encryption.path", path)
	}
}
