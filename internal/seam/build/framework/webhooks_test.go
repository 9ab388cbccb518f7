package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// readWebhooks reads a configuration file with the key webhooks.
func readWebhooks(t *testing.T, asked string) (framework.Config, error) {
	t.Helper()
	return framework.Read(tree(t, map[string]string{"framework.json": pythonHead + `, "env": {"LG_WEBHOOK_KEY": "file", "OTHER": "x"}, "webhooks": ` + asked + `}`, "pyproject.toml": ""}), "")
}

func TestTheKeyWebhooks(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]*build.Webhooks{
		`{}`:                      nil,
		`{"env_prefix": "HOOK_"}`: {NoLoopback: true, MaxLength: 4096},
		`{"url": {"x": null}}`:    {NoLoopback: true, MaxLength: 2048, HTTPS: true},
		`{"allowed_fields": ["values", "cancel_reason"]}`: {NoLoopback: true, MaxLength: 4096, Fields: []string{"values", "cancel_reason"}},
		`{"url": {"allowed_domains": ["a.test"]}, "headers": {"X-Key": "${{env.LG_WEBHOOK_KEY}}"}}`: {
			Env: map[string]string{"LG_WEBHOOK_KEY": "file"}, HTTPS: true, NoLoopback: true, MaxLength: 2048, Domains: []string{"a.test"}, Headers: map[string]string{"X-Key": "${{env.LG_WEBHOOK_KEY}}"},
		},
		`{"headers": {"X-Key": "Bearer ${{ env.LG_WEBHOOK_KEY }}", "x-fixed": "a"}}`: {
			Env: map[string]string{"LG_WEBHOOK_KEY": "file"}, NoLoopback: true, MaxLength: 4096, Headers: map[string]string{"X-Key": "Bearer ${{ env.LG_WEBHOOK_KEY }}", "x-fixed": "a"},
		},
		`{"env_prefix": "", "headers": {"X-Key": "${{env.KEY}}"}}`: {NoLoopback: true, MaxLength: 4096, Headers: map[string]string{"X-Key": "${{env.KEY}}"}},
		`{"url": {"require_https": false, "allowed_domains": ["hooks.test", "*.corp.test"], "allowed_ports": [443, 8443], "max_url_length": 100, "disable_loopback": false, "disable_private_ips": true}}`: {
			Domains: []string{"hooks.test", "*.corp.test"}, Ports: []int{443, 8443}, MaxLength: 100, NoPrivate: true,
		},
	} {
		config, err := readWebhooks(t, asked)
		if err != nil {
			t.Errorf("%s: %v", asked, err)
			continue
		}
		if diff := cmp.Diff(want, config.Settings.Webhooks, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", asked, diff)
		}
		if keys := config.Settings.Keys(); (len(keys) == 1) != (want != nil) {
			t.Errorf("%s: the keys are %q", asked, keys)
		}
		if remarked := len(config.Remarks) > 0; remarked != (strings.Contains(asked, "disable_loopback") || strings.Contains(asked, "env.") && !strings.Contains(asked, "allowed_domains")) {
			t.Errorf("%s: the remarks are %q", asked, config.Remarks)
		}
	}
}

func TestWhatIsRefusedOfTheKeyWebhooks(t *testing.T) {
	t.Parallel()
	for asked, words := range map[string]string{
		`true`:                                        "- webhooks: must be an object",
		`{"secret": "x"}`:                             "- webhooks.secret: is not a key of webhooks",
		`{"url": {"domains": ["a"]}}`:                 "- webhooks.url.domains: is not a key of webhooks.url",
		`{"url": {"require_https": "no"}}`:            "- webhooks.url.require_https: must be true or false",
		`{"url": {"allowed_ports": ["443"]}}`:         "- webhooks.url.allowed_ports: must be a list of whole numbers",
		`{"url": {"allowed_ports": [0]}}`:             "- webhooks.url.allowed_ports: must be numbers from 1 to 65535",
		`{"url": {"allowed_domains": ["a.*.test"]}}`:  "- webhooks.url.allowed_domains: must name one host",
		`{"url": {"allowed_domains": ["https://a"]}}`: "- webhooks.url.allowed_domains: must name one host",
		`{"url": {"max_url_length": 0}}`:              "- webhooks.url.max_url_length: must be more than 0",
		`{"headers": {"a b": "c"}}`:                   `- webhooks.headers: "a b" is not a name`,
		`{"headers": {"webhook-id": "c"}}`:            "- webhooks.headers.webhook-id: is set by the platform",
		`{"headers": {"X-Key": "b", "x-key": "c"}}`:   "- webhooks.headers.x-key: is the same header as X-Key",
		`{"headers": {"a": "b\nc"}}`:                  "- webhooks.headers.a: has a character",
		`{"headers": {"a": 1}}`:                       "- webhooks.headers: must be an object of strings",
		`{"headers": {"a": "${{ env.HOME }}"}}`:       "- webhooks.headers.a: the name of the variable HOME must begin with LG_WEBHOOK_",
		`{"headers": {"a": "${{ secrets.A }}"}}`:      "- webhooks.headers.a: ${{ secrets.A }} must be a variable",
		`{"allowed_fields": ["input"]}`:               `- webhooks.allowed_fields: "input" is not a field`,
	} {
		if _, err := readWebhooks(t, asked); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want %q", asked, err, words)
		}
	}
}
