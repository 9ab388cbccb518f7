package framework

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/pattern"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// httpGroups are the groups of routes that a repository may disable, by disable_....
var httpGroups = []string{"a2a", "assistants", "mcp", "meta", "runs", "store", "threads", "ui", "webhooks"}

// httpKeys are the members of http.
var httpKeys = func() map[string]string {
	known := map[string]string{
		"app": "", "cors": "", "configurable_headers": "", "logging_headers": "", "middleware_order": "", "enable_custom_route_auth": "", "mount_prefix": "",
	}
	for _, group := range httpGroups {
		known["disable_"+group] = ""
	}
	return known
}()

var (
	corsKeys = map[string]string{
		"allow_origins": "", "allow_origin_regex": "", "allow_methods": "", "allow_headers": "", "allow_credentials": "", "expose_headers": "", "max_age": "",
	}
	headerKeys = map[string]string{"include": "", "includes": "", "exclude": "", "excludes": ""}
)

// mountPrefix matches the prefixes that all paths may have.
var mountPrefix = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// http reads the settings of the server's HTTP interface.
func (p *parser) http() {
	fields := p.object("http", `{"app": "./app.py:app"}`, httpKeys)
	if fields == nil {
		return
	}
	asked := &build.HTTP{App: p.app(fields["app"])}
	for _, group := range httpGroups {
		var disabled bool
		if p.member(fields, "http", "disable_"+group, &disabled); disabled {
			asked.Disabled = append(asked.Disabled, group)
		}
	}
	asked.CORS = p.cors(fields)
	p.headers(fields, asked)
	p.routeAuth(fields, asked)
	p.member(fields, "http", "mount_prefix", &asked.MountPrefix)
	if asked.MountPrefix = strings.TrimSuffix(asked.MountPrefix, "/"); asked.MountPrefix != "" && (!mountPrefix.MatchString(asked.MountPrefix) || strings.Contains(asked.MountPrefix+"/", "/./") || strings.Contains(asked.MountPrefix+"/", "/../")) {
		p.problem(`http.mount_prefix: must be a path that begins with a slash, as "/api"`)
	}
	p.httpRemarks(fields)
	p.config.Settings.HTTP = asked
}

// app reads the path of the repository's own application.
func (p *parser) app(value json.RawMessage) string {
	if !asks(value) {
		return ""
	}
	return p.variable("http.app", value)
}

// routeAuth reads whether the application's routes require the credentials of the server. On
// the framework's own server for JavaScript they do if there is an own authentication.
func (p *parser) routeAuth(fields map[string]json.RawMessage, asked *build.HTTP) {
	const member = "enable_custom_route_auth"
	asked.RouteAuth = p.config.Language == Node && p.config.Auth != "" && asked.App != ""
	if asked.RouteAuth && len(fields[member]) == 0 {
		p.remark("http."+member, "the application's routes require the repository's own authentication; false opens them to every caller")
	}
	p.member(fields, "http", member, &asked.RouteAuth)
}

// cors reads the rules for pages of other origins.
func (p *parser) cors(http map[string]json.RawMessage) *build.CORS {
	fields := p.objectIn(http, "cors", "http.cors", `{"allow_origins": ["https://app.example.com"]}`, corsKeys)
	if fields == nil {
		return nil
	}
	asked := &build.CORS{}
	p.member(fields, "http.cors", "allow_origins", &asked.Origins)
	p.member(fields, "http.cors", "allow_origin_regex", &asked.OriginPattern)
	p.member(fields, "http.cors", "allow_methods", &asked.Methods)
	p.member(fields, "http.cors", "allow_headers", &asked.Headers)
	p.member(fields, "http.cors", "allow_credentials", &asked.Credentials)
	p.member(fields, "http.cors", "expose_headers", &asked.Exposed)
	p.member(fields, "http.cors", "max_age", &asked.MaxAge)
	if _, err := pattern.Compile(asked.OriginPattern); err != nil {
		p.problem("http.cors.allow_origin_regex: cannot be used: %v", err)
	}
	if asked.MaxAge != nil && *asked.MaxAge < 0 {
		p.problem("http.cors.max_age: must be 0 or more seconds")
	}
	for name, values := range map[string][]string{"allow_origins": asked.Origins, "allow_methods": asked.Methods, "allow_headers": asked.Headers, "expose_headers": asked.Exposed} {
		if slices.ContainsFunc(values, func(v string) bool { return v == "" || strings.ContainsAny(v, "\r\n,") }) {
			p.problem("http.cors.%s: must name one thing with each string", name)
		}
	}
	return asked
}

// headers reads which headers graphs see.
func (p *parser) headers(http map[string]json.RawMessage, asked *build.HTTP) {
	const member = "http.configurable_headers"
	fields := p.objectIn(http, "configurable_headers", member, `{"include": ["x-user-id"], "exclude": ["authorization"]}`, headerKeys)
	for _, spelling := range []string{"", "s"} {
		var include, exclude []string
		p.member(fields, member, "include"+spelling, &include)
		p.member(fields, member, "exclude"+spelling, &exclude)
		asked.Include, asked.Exclude = append(asked.Include, include...), append(asked.Exclude, exclude...)
	}
	for _, names := range slices.Concat(asked.Include, asked.Exclude) {
		if _, err := path.Match(names, ""); err != nil {
			p.problem("http.configurable_headers: the pattern %q cannot be used: %v", names, err)
		}
	}
}

// httpRemarks adds remarks about the members of http that have no effect here.
func (p *parser) httpRemarks(fields map[string]json.RawMessage) {
	if asks(fields["logging_headers"]) {
		p.remark("http.logging_headers", "the server logs no headers at all")
	}
	var order string
	p.member(fields, "http", "middleware_order", &order)
	switch order {
	case "", "auth_first":
	case "middleware_first":
		p.remark("http.middleware_order", "credentials are checked before the middleware of the repository's own application, whatever the order")
	default:
		p.problem(`http.middleware_order: must be "auth_first" or "middleware_first"`)
	}
}
