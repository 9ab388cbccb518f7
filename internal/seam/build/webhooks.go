package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
)

// Webhooks is the value of the key webhooks: the rules for the addresses to which runs report
// their end, and the headers of these messages.
type Webhooks struct {
	HTTPS bool `json:"https,omitempty"`
	// Domains are names of hosts, and "*.example.com" for all names below example.com. No names
	// permit all hosts.
	Domains []string `json:"domains,omitempty"`
	// Ports are the permitted ports. No ports permit all ports.
	Ports     []int `json:"ports,omitempty"`
	MaxLength int   `json:"max_length"`
	// NoLoopback forbids addresses of the machine itself, and NoPrivate all addresses that are
	// not public, also if the operator of the server permits them.
	NoLoopback bool `json:"no_loopback,omitempty"`
	NoPrivate  bool `json:"no_private,omitempty"`
	// Headers are the values of headers by name, in which "${{ env.NAME }}" stands for the value
	// of a variable of the agent. Env has those of these variables that the configuration file
	// sets. Other variables are secrets, whose values are not stored here.
	Headers map[string]string `json:"headers,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// Fields are the fields of a message that are sent, nil for all fields.
	Fields []string `json:"fields,omitempty"`
}

// WebhookTemplate matches the templates in the values of headers.
var WebhookTemplate = regexp.MustCompile(`\$\{\{\s*([^}]+?)\s*\}\}`)

// webhookRule begins the part of a refusal that names the rule.
const webhookRule = "the deployment's configuration file says so (webhooks.url.%s)"

// Check returns a fault.Invalid if the rules do not permit an address, the value of a field. A
// nil Webhooks permits all addresses.
func (w *Webhooks) Check(field, address string) error {
	if w == nil {
		return nil
	}
	at, err := url.Parse(address)
	if err != nil {
		return fault.New(fault.Invalid, "%s must be an absolute URL.", field)
	}
	refuse := func(member, what string, args ...any) error {
		return fault.New(fault.Invalid, "%s %s: %s.", field, fmt.Sprintf(what, args...), fmt.Sprintf(webhookRule, member))
	}
	host := strings.ToLower(strings.TrimSuffix(at.Hostname(), "."))
	switch {
	case len(address) > w.MaxLength:
		return refuse("max_url_length", "must have at most %d characters", w.MaxLength)
	case w.HTTPS && at.Scheme != "https":
		return refuse("require_https", "must be an https URL")
	case len(w.Ports) > 0 && !slices.Contains(w.Ports, portOf(at)):
		return refuse("allowed_ports", "must not have the port %d", portOf(at))
	case len(w.Domains) > 0 && !slices.ContainsFunc(w.Domains, func(domain string) bool { return isBelow(host, domain) }):
		return refuse("allowed_domains", "must not have the host %q", host)
	case w.NoLoopback && isLoopback(host):
		return refuse("disable_loopback", "must not name the server itself")
	case w.NoPrivate && outbound.CheckURL(field, "https://"+at.Host, nil) != nil:
		return refuse("disable_private_ips", "must not name a private address")
	}
	return nil
}

func portOf(at *url.URL) int {
	if port, err := strconv.Atoi(at.Port()); err == nil {
		return port
	}
	if at.Scheme == "https" {
		return 443
	}
	return 80
}

// isBelow reports whether a host is a domain or, for a domain with a star, below it.
func isBelow(host, domain string) bool {
	domain = strings.ToLower(domain)
	if parent, ok := strings.CutPrefix(domain, "*"); ok {
		return strings.HasSuffix(host, parent)
	}
	return host == domain
}

// thisNetwork has the addresses by which some systems reach themselves.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// isLoopback reports whether a host, by its text, is the machine itself. The address that a
// name is resolved to is checked when the message is sent.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || strings.HasSuffix(host, ".localhost")
	}
	addr = addr.Unmap()
	return addr.IsLoopback() || addr.IsUnspecified() || thisNetwork.Contains(addr)
}

// Header returns the headers with the values of the agent's secrets and of Env. The error names a
// header that has no value, and never holds a value.
func (w *Webhooks) Header(secrets map[string]string) (map[string]string, error) {
	header := map[string]string{}
	if w == nil {
		return header, nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		missing := ""
		value := WebhookTemplate.ReplaceAllStringFunc(w.Headers[name], func(template string) string {
			variable := strings.TrimPrefix(WebhookTemplate.FindStringSubmatch(template)[1], "env.")
			value, isSecret := secrets[variable]
			if isSecret {
				return value
			}
			value, isSet := w.Env[variable]
			if !isSet {
				missing = variable
			}
			return value
		})
		switch {
		case missing != "":
			return nil, fmt.Errorf("webhooks.headers.%s: the variable %s is not set", name, missing)
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, fmt.Errorf("webhooks.headers.%s: the value has a character that no header may have", name)
		}
		header[name] = value
	}
	return header, nil
}

// Message returns the fields of a message that are sent.
func (w *Webhooks) Message(body []byte) ([]byte, error) {
	if w == nil || w.Fields == nil {
		return body, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("decode message: %w", err)
	}
	maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return !slices.Contains(w.Fields, name) })
	return json.Marshal(fields)
}
