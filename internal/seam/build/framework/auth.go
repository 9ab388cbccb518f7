package framework

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// authKeys are the members of auth. A member with a text is refused, and the text is the
// reason.
var authKeys = map[string]string{
	"path":                "",
	"disable_studio_auth": "",
	"openapi":             "",
	"cache":               "answers of the repository's own authentication are never kept",
}

// auth reads the path of the repository's own authentication, if the platform runs it.
func (p *parser) auth() {
	if !slices.Contains(p.offers, OfferAuth) {
		return
	}
	fields := p.object("auth", `{"path": "./auth.py:auth"}`, authKeys)
	if fields == nil {
		return
	}
	p.authPath(fields["path"])
	p.studio(fields["disable_studio_auth"])
}

// authPath checks that the path is a file of the repository that the Python runtime can
// import.
func (p *parser) authPath(value json.RawMessage) {
	var path string
	if json.Unmarshal(value, &path) != nil {
		path = ""
	}
	file, variable, ok := cutLast(path)
	switch {
	case !ok || file == "" || variable == "":
		p.problem(`auth.path: must be "path/to/file.py:variable"`)
	case !strings.HasSuffix(file, ".py"):
		p.problem("auth.path: %q is not a Python file, and only the Python runtime runs the repository's own authentication", file)
	case filepath.IsAbs(file) || !filepath.IsLocal(filepath.Join(p.config.Dir, file)):
		p.problem("auth.path: the path %q leaves the repository", file)
	default:
		p.config.Auth = path
	}
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

// cutLast splits a path at its last colon.
func cutLast(path string) (file, variable string, ok bool) {
	at := strings.LastIndexByte(path, ':')
	if at < 0 {
		return path, "", false
	}
	return path[:at], path[at+1:], true
}
