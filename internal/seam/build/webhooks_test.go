package build_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/build"
)

func TestRulesForAddresses(t *testing.T) {
	t.Parallel()
	all := &build.Webhooks{HTTPS: true, Domains: []string{"hooks.test", "*.Corp.test"}, Ports: []int{443, 8443}, MaxLength: 40, NoLoopback: true}
	lax := &build.Webhooks{MaxLength: 4096}
	for _, c := range []struct {
		rules         *build.Webhooks
		address, rule string
	}{
		{nil, "http://localhost/" + strings.Repeat("x", 5000), ""},
		{lax, "http://localhost:1/", ""},
		{all, "https://hooks.test/a", ""},
		{all, "https://HOOKS.test.:8443/a", ""},
		{all, "https://a.b.corp.test", ""},
		{all, "https://corp.test", "allowed_domains"},
		{all, "https://evilcorp.test", "allowed_domains"},
		{all, "https://hooks.test.evil", "allowed_domains"},
		{all, "http://hooks.test:443", "require_https"},
		{all, "https://hooks.test:80", "allowed_ports"},
		{all, "https://hooks.test/" + strings.Repeat("x", 40), "max_url_length"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://127.0.0.2/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://[::ffff:127.0.0.1]/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://0.0.0.0/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://0.1.2.3/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://[::]/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://[::ffff:0.0.0.0]/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://LOCALHOST/", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoLoopback: true}, "https://a.localhost./", "disable_loopback"},
		{&build.Webhooks{MaxLength: 99, NoPrivate: true}, "https://10.0.0.1:8443/", "disable_private_ips"},
		{&build.Webhooks{MaxLength: 99, NoPrivate: true}, "http://[fd00::1]/", "disable_private_ips"},
		{&build.Webhooks{MaxLength: 99, NoPrivate: true}, "http://localhost/", "disable_private_ips"},
		{&build.Webhooks{MaxLength: 99, NoPrivate: true}, "http://8.8.8.8/", ""},
		{&build.Webhooks{MaxLength: 99, NoPrivate: true}, "http://hooks.test/", ""},
	} {
		err := c.rules.Check("webhook", c.address)
		switch {
		case c.rule == "" && err != nil:
			t.Errorf("%s: %v", c.address, err)
		case c.rule != "" && (!fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "webhook must ") || !strings.Contains(err.Error(), "webhooks.url."+c.rule)):
			t.Errorf("%s: got %v, want the rule %s", c.address, err, c.rule)
		}
	}
}

func TestHeadersFromVariables(t *testing.T) {
	t.Parallel()
	rules := &build.Webhooks{
		Headers: map[string]string{"x-key": "Bearer ${{ env.A }}${{env.B}}", "x-fixed": "${{ env.C }}${{ env.A }}"},
		Env:     map[string]string{"A": "file", "C": "file,"},
	}
	header, err := rules.Header(map[string]string{"A": "one", "B": ""})
	if err != nil || header["x-key"] != "Bearer one" || header["x-fixed"] != "file,one" {
		t.Errorf("got %v, %v", header, err)
	}
	for want, env := range map[string]map[string]string{
		"webhooks.headers.x-key: the variable B is not set":   {"A": "planted"},
		"webhooks.headers.x-fixed: the value has a character": {"A": "planted\r\nx: y", "B": ""},
	} {
		if _, err := rules.Header(env); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
