package framework

import (
	"encoding/json"
)

// authKeys are the members of auth. A member with a text is refused, and the text is the
// reason.
var authKeys = map[string]string{
	"path":                "",
	"disable_studio_auth": "",
	"openapi":             "",
	"cache":               "answers of the repository's own authentication are never kept",
}

// auth reads the path of the repository's own authentication.
func (p *parser) auth() {
	fields := p.object("auth", `{"path": "./auth.py:auth"}`, authKeys)
	if fields == nil {
		return
	}
	p.config.Auth = p.variable("auth.path", fields["path"])
	p.studio(fields["disable_studio_auth"])
}

// studio adds the remark that no key of the platform gets past the repository's own
// authentication.
func (p *parser) studio(value json.RawMessage) {
	var disabled bool
	switch {
	case len(value) == 0 || string(value) == "null":
	case json.Unmarshal(value, &disabled) != nil:
		p.problem("auth.disable_studio_auth: must be true or false")
	case !disabled:
		p.remark("auth.disable_studio_auth", "a key of the platform does not get past the repository's own authentication, whatever the value")
	}
}
