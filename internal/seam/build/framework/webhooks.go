package framework

import (
	"encoding/json"
	"maps"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/slipway-run/slipway/internal/seam/build"
)

const (
	// defaultPrefix begins the names of the variables that headers of webhooks may show.
	defaultPrefix = "LG_WEBHOOK_"
	// defaultURLLength and longURLLength are the largest lengths of an address, with and without
	// webhooks.url.
	defaultURLLength, longURLLength = 2048, 4096
)

var (
	// webhookFields are the fields of the message about a run's end.
	webhookFields = []string{
		"run_id", "thread_id", "assistant_id", "created_at", "updated_at", "metadata", "kwargs", "multitask_strategy", "status", "run_started_at",
		"run_ended_at", "webhook_sent_at", "values", "error", "cancel_reason",
	}
	// ownHeaders belong to the message itself.
	ownHeaders = []string{
		"Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Webhook-Id", "Webhook-Signature", "Webhook-Timestamp",
	}
	// webhookVariable is what a template of a header may be, behind its prefix.
	webhookVariable = regexp.MustCompile(`^env\.([A-Za-z_][A-Za-z0-9_]*)$`)
)

// webhooks reads the rules for the addresses to which runs report their end.
func (p *parser) webhooks() {
	settings := &build.Webhooks{NoLoopback: true, MaxLength: longURLLength, Env: map[string]string{}}
	var rules json.RawMessage
	prefix := defaultPrefix
	if !p.object("webhooks", `{"url": {"allowed_domains": ["hooks.example.com"]}}`, map[string]any{
		"env_prefix": &prefix, "url": &rules, "headers": &settings.Headers, "allowed_fields": &settings.Fields,
	}) {
		return
	}
	hasTemplate, spelled := "", map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(settings.Headers)) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if other, twice := spelled[canonical]; twice {
			p.problem("webhooks.headers.%s: is the same header as %s", name, other)
		}
		spelled[canonical] = name
		for _, variable := range p.webhookHeader(name, settings.Headers[name], prefix) {
			hasTemplate = name
			if value, ok := p.config.Env[variable]; ok {
				settings.Env[variable] = value
			}
		}
	}
	for _, field := range settings.Fields {
		if !slices.Contains(webhookFields, field) {
			p.problem("webhooks.allowed_fields: %q is not a field of a message; they are %s", field, strings.Join(webhookFields, ", "))
		}
	}
	p.webhookURL(rules, settings)
	if hasTemplate != "" && len(settings.Domains) == 0 {
		p.remark("webhooks.headers."+hasTemplate, "without webhooks.url.allowed_domains, the secret goes to any address that a caller names")
	}
	p.config.Settings.Webhooks = settings
}

// webhookURL reads the rules for addresses.
func (p *parser) webhookURL(value json.RawMessage, settings *build.Webhooks) {
	const path = "webhooks.url"
	if !asks(value) {
		return
	}
	settings.HTTPS, settings.MaxLength = true, defaultURLLength
	p.objectIn(path, value, `{"require_https": true}`, map[string]any{
		"require_https": &settings.HTTPS, "allowed_domains": &settings.Domains, "allowed_ports": &settings.Ports, "max_url_length": &settings.MaxLength,
		"disable_loopback": &settings.NoLoopback, "disable_private_ips": &settings.NoPrivate,
	})
	if settings.MaxLength <= 0 {
		p.problem("%s.max_url_length: must be more than 0", path)
	}
	for _, domain := range settings.Domains {
		if rest := strings.TrimPrefix(domain, "*."); rest == "" || strings.ContainsAny(rest, "*/:@ ") {
			p.problem(`%s.allowed_domains: must name one host with each string, as "hooks.example.com", or all hosts below a domain, as "*.example.com"`, path)
		}
	}
	if slices.ContainsFunc(settings.Ports, func(port int) bool { return port < 1 || port > 65535 }) {
		p.problem("%s.allowed_ports: must be numbers from 1 to 65535", path)
	}
	if !settings.NoLoopback {
		p.remark(path+".disable_loopback", "an address without a host is refused all the same, and the operator of the server must permit addresses of the machine")
	}
}

// webhookHeader checks a header, and returns the variables in its value.
func (p *parser) webhookHeader(name, value, prefix string) (variables []string) {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		p.problem("webhooks.headers: %q is not a name that a header can have", name)
	case slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)):
		p.problem("webhooks.headers.%s: is set by the platform", name)
	case !httpguts.ValidHeaderFieldValue(value):
		p.problem("webhooks.headers.%s: has a character that no header may have", name)
	}
	for _, template := range build.WebhookTemplate.FindAllStringSubmatch(value, -1) {
		variable := webhookVariable.FindStringSubmatch(template[1])
		switch {
		case variable == nil:
			p.problem("webhooks.headers.%s: ${{ %s }} must be a variable, as ${{ env.%sTOKEN }}", name, template[1], prefix)
		case !strings.HasPrefix(variable[1], prefix):
			p.problem("webhooks.headers.%s: the name of the variable %s must begin with %s, as webhooks.env_prefix says", name, variable[1], prefix)
		default:
			variables = append(variables, variable[1])
		}
	}
	return variables
}
