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
	settings := &build.HTTP{}
	var app, cors, headers, logged json.RawMessage
	var routeAuth *bool
	order := "auth_first"
	members := map[string]any{
		"app": &app, "cors": &cors, "configurable_headers": &headers, "logging_headers": &logged, "middleware_order": &order,
		"enable_custom_route_auth": &routeAuth, "mount_prefix": &settings.MountPrefix,
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
			settings.Disabled = append(settings.Disabled, group)
		}
	}
	if asks(app) {
		settings.App = p.variable("http.app", app)
	}
	settings.CORS = p.cors(cors)
	p.headers(headers, settings)
	p.routeAuth(routeAuth, settings)
	if settings.MountPrefix = strings.TrimSuffix(settings.MountPrefix, "/"); settings.MountPrefix != "" && (!mountPrefix.MatchString(settings.MountPrefix) || path.Clean(settings.MountPrefix) != settings.MountPrefix) {
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
	p.config.Settings.HTTP = settings
}

// routeAuth decides whether the application's routes require the credentials of the server. On
// the framework's own server for JavaScript they do if there is an own authentication.
func (p *parser) routeAuth(wanted *bool, settings *build.HTTP) {
	if wanted != nil {
		settings.RouteAuth = *wanted
	} else if p.config.Language == Node && p.config.Auth != "" && settings.App != "" {
		settings.RouteAuth = true
		p.remark("http.enable_custom_route_auth", "the application's routes require the repository's own authentication; false opens them to every caller")
	}
}

// cors reads the rules for pages of other origins.
func (p *parser) cors(value json.RawMessage) *build.CORS {
	settings := &build.CORS{}
	if !p.objectIn("http.cors", value, `{"allow_origins": ["https://app.example.com"]}`, map[string]any{
		"allow_origins": &settings.Origins, "allow_origin_regex": &settings.OriginPattern, "allow_methods": &settings.Methods, "allow_headers": &settings.Headers,
		"allow_credentials": &settings.Credentials, "expose_headers": &settings.Exposed, "max_age": &settings.MaxAge,
	}) {
		return nil
	}
	if _, err := pattern.Compile(settings.OriginPattern); err != nil {
		p.problem("http.cors.allow_origin_regex: cannot be used: %v", err)
	}
	if settings.MaxAge != nil && *settings.MaxAge < 0 {
		p.problem("http.cors.max_age: must be 0 or more seconds")
	}
	for name, values := range map[string][]string{"allow_origins": settings.Origins, "allow_methods": settings.Methods, "allow_headers": settings.Headers, "expose_headers": settings.Exposed} {
		if slices.ContainsFunc(values, func(v string) bool { return v == "" || strings.ContainsAny(v, "\r\n,") }) {
			p.problem("http.cors.%s: must name one thing with each string", name)
		}
	}
	return settings
}

// headers reads which headers graphs see. The members have two spellings.
func (p *parser) headers(value json.RawMessage, settings *build.HTTP) {
	const member = "http.configurable_headers"
	var includes, excludes []string
	p.objectIn(member, value, `{"include": ["x-user-id"], "exclude": ["authorization"]}`, map[string]any{
		"include": &settings.Include, "includes": &includes, "exclude": &settings.Exclude, "excludes": &excludes,
	})
	settings.Include, settings.Exclude = append(settings.Include, includes...), append(settings.Exclude, excludes...)
	for _, names := range slices.Concat(settings.Include, settings.Exclude) {
		if _, err := path.Match(names, ""); err != nil {
			p.problem("%s: the pattern %q cannot be used: %v", member, names, err)
		}
	}
}
