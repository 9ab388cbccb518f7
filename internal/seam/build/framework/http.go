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

// mountPrefix matches the prefixes that all paths may have.
var mountPrefix = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// http reads the settings of the server's HTTP interface.
func (p *parser) http() {
	asked := &build.HTTP{}
	var app, cors, headers, logged json.RawMessage
	var routeAuth *bool
	order := "auth_first"
	members := map[string]any{
		"app": &app, "cors": &cors, "configurable_headers": &headers, "logging_headers": &logged, "middleware_order": &order,
		"enable_custom_route_auth": &routeAuth, "mount_prefix": &asked.MountPrefix,
	}
	disabled := make([]bool, len(httpGroups))
	for i, group := range httpGroups {
		members["disable_"+group] = &disabled[i]
	}
	if !p.object("http", `{"app": "./app.py:app"}`, members) {
		return
	}
	for i, group := range httpGroups {
		if disabled[i] {
			asked.Disabled = append(asked.Disabled, group)
		}
	}
	if asks(app) {
		asked.App = p.variable("http.app", app)
	}
	asked.CORS = p.cors(cors)
	p.headers(headers, asked)
	p.routeAuth(routeAuth, asked)
	if asked.MountPrefix = strings.TrimSuffix(asked.MountPrefix, "/"); asked.MountPrefix != "" && (!mountPrefix.MatchString(asked.MountPrefix) || path.Clean(asked.MountPrefix) != asked.MountPrefix) {
		p.problem(`http.mount_prefix: must be a path that begins with a slash, as "/api"`)
	}
	if asks(logged) {
		p.remark("http.logging_headers", "the server logs no headers at all")
	}
	switch order {
	case "", "auth_first":
	case "middleware_first":
		p.remark("http.middleware_order", "credentials are checked before the middleware of the repository's own application, whatever the order")
	default:
		p.problem(`http.middleware_order: must be "auth_first" or "middleware_first"`)
	}
	p.config.Settings.HTTP = asked
}

// routeAuth decides whether the application's routes require the credentials of the server. On
// the framework's own server for JavaScript they do if there is an own authentication.
func (p *parser) routeAuth(wanted *bool, asked *build.HTTP) {
	if wanted != nil {
		asked.RouteAuth = *wanted
	} else if p.config.Language == Node && p.config.Auth != "" && asked.App != "" {
		asked.RouteAuth = true
		p.remark("http.enable_custom_route_auth", "the application's routes require the repository's own authentication; false opens them to every caller")
	}
}

// cors reads the rules for pages of other origins.
func (p *parser) cors(value json.RawMessage) *build.CORS {
	asked := &build.CORS{}
	if !p.objectIn("http.cors", value, `{"allow_origins": ["https://app.example.com"]}`, map[string]any{
		"allow_origins": &asked.Origins, "allow_origin_regex": &asked.OriginPattern, "allow_methods": &asked.Methods, "allow_headers": &asked.Headers,
		"allow_credentials": &asked.Credentials, "expose_headers": &asked.Exposed, "max_age": &asked.MaxAge,
	}) {
		return nil
	}
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

// headers reads which headers graphs see. The members have two spellings.
func (p *parser) headers(value json.RawMessage, asked *build.HTTP) {
	const member = "http.configurable_headers"
	var includes, excludes []string
	p.objectIn(member, value, `{"include": ["x-user-id"], "exclude": ["authorization"]}`, map[string]any{
		"include": &asked.Include, "includes": &includes, "exclude": &asked.Exclude, "excludes": &excludes,
	})
	asked.Include, asked.Exclude = append(asked.Include, includes...), append(asked.Exclude, excludes...)
	for _, names := range slices.Concat(asked.Include, asked.Exclude) {
		if _, err := path.Match(names, ""); err != nil {
			p.problem("%s: the pattern %q cannot be used: %v", member, names, err)
		}
	}
}
