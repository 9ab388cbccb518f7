package standalone_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// inside are addresses that a tenant must not make the server call, as the hosts of URLs.
var inside = []string{
	"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "127.255.255.254",
	"10.0.0.1", "172.16.0.1", "192.168.1.1", "[fd00::1]", "100.64.0.1", "100.100.100.200",
	"169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]",
}

// places are the members of requests with an address that the server calls later: each entry
// sends a request with such a member.
var places = map[string]func(s *addressed, url string) (status int, answer string){
	"WebhookCreateRequest.url": func(s *addressed, url string) (int, string) {
		return s.send("POST", "/v2/webhooks", map[string]any{"url": url})
	},
	"WebhookPatchRequest.url": func(s *addressed, url string) (int, string) {
		return s.send("PATCH", s.webhook, map[string]any{"url": url})
	},
	"RunCreate.webhook": func(s *addressed, url string) (int, string) {
		return s.send("POST", s.agent+"/runs", map[string]any{"assistant_id": "agent", "webhook": url})
	},
	"CronCreate.webhook": func(s *addressed, url string) (int, string) {
		return s.send("POST", s.agent+"/runs/crons", map[string]any{"assistant_id": "agent", "schedule": "0 0 1 1 *", "webhook": url})
	},
	"CronPatch.webhook": func(s *addressed, url string) (int, string) {
		return s.send("PATCH", s.cron, map[string]any{"webhook": url})
	},
	"AuthProviderCreateRequest.auth_url":       func(s *addressed, url string) (int, string) { return s.provide("auth_url", url) },
	"AuthProviderCreateRequest.token_url":      func(s *addressed, url string) (int, string) { return s.provide("token_url", url) },
	"AuthProviderCreateRequest.revocation_url": func(s *addressed, url string) (int, string) { return s.provide("revocation_url", url) },
	"AuthProviderPatchRequest.auth_url":        func(s *addressed, url string) (int, string) { return s.move("auth_url", url) },
	"AuthProviderPatchRequest.token_url":       func(s *addressed, url string) (int, string) { return s.move("token_url", url) },
	"AuthProviderPatchRequest.revocation_url":  func(s *addressed, url string) (int, string) { return s.move("revocation_url", url) },
	"AuthProviderDiscoverRequest.mcp_server_url": func(s *addressed, url string) (int, string) {
		return s.send("POST", "/v2/auth/providers/mcp-discover", map[string]any{"provider_id": "found", "name": "Found", "mcp_server_url": url})
	},
	"TrustRuleCreateRequest.issuer": func(s *addressed, url string) (int, string) {
		return s.send("POST", "/v2/workspaces/current/trust-rules", map[string]any{"issuer": url, "role": "viewer", "claims": map[string]any{"sub": "a"}})
	},
}

// elsewhere are the other members that look like addresses, and the reasons why places lacks
// them.
var elsewhere = map[string]string{
	"SourceConfigRequest.repo_url":                         "is cloned by a build: TestAttackGitReachesNoPrivateAddress in build/local, and below",
	"SourceRevisionConfigRequest.image_uri":                "is pulled by an engine: TestAttackRegistriesHavePublicAddresses",
	"Container.image":                                      "the same",
	"Container.imagePullPolicy":                            "is a word",
	"Container.securityContext":                            "is none",
	"ResourceSpec.image_pull_secrets":                      "are names",
	"ListenerReport.url":                                   "is called by name, too: TestAttackAnAgentWhoseNameLeadsInside in control/listener",
	"SourceConfigRequest.custom_url":                       "is shown and never called",
	"GitCredentialCreateRequest.host":                      "is compared with the host of a repository's URL",
	"MemberCreateRequest.issuer":                           "is compared with the issuers that the operator has configured",
	"PushTokenRequest.supports_registry_username":          "is a flag",
	"RunCreate.checkpoint_during":                          "is a flag",
	"CronCreate.checkpoint_during":                         "is a flag",
	"AuthProviderCreateRequest.token_endpoint_auth_method": "is a word",
	"AuthProviderPatchRequest.token_endpoint_auth_method":  "is a word",
}

// addressed is a server that other machines can reach, with the resources for requests with
// addresses.
type addressed struct {
	client
	t                    *testing.T
	webhook, agent, cron string
}

func (s *addressed) send(method, path string, body any) (status int, answer string) {
	s.t.Helper()
	status, text := ask(s.t, method, s.base+path, s.headers, body)
	return status, string(text)
}

// provider is a valid request for a provider.
func provider(id, member, url string) map[string]any {
	request := map[string]any{
		"provider_id": id, "name": "Calendar", "client_id": "c", "client_secret": "s",
		"auth_url": "https://accounts.example.com/a", "token_url": "https://accounts.example.com/t", "revocation_url": "https://accounts.example.com/r",
	}
	if member != "" {
		request[member] = url
	}
	return request
}

func (s *addressed) provide(member, url string) (status int, answer string) {
	return s.send("POST", "/v2/auth/providers", provider("other", member, url))
}

func (s *addressed) move(member, url string) (status int, answer string) {
	return s.send("PATCH", "/v2/auth/providers/calendar", map[string]any{member: url, "client_secret": "s"})
}

// members are the members of requests in the documents that look like addresses.
func members(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	looks := regexp.MustCompile(`url|uri|webhook|host|issuer|image|endpoint|address|origin|server|registry|callback`)
	requests := regexp.MustCompile(`Request$|Create$|Patch$|Report$|^Container$|^ResourceSpec$`)
	for _, document := range [][]byte{openapi.ControlPlane, openapi.AgentServer} {
		var read struct {
			Components struct {
				Schemas map[string]struct{ Properties map[string]any }
			}
		}
		check.Must(t, json.Unmarshal(document, &read))
		for name, schema := range read.Components.Schemas {
			for member := range schema.Properties {
				if requests.MatchString(name) && looks.MatchString(member) {
					found[name+"."+member] = true
				}
			}
		}
	}
	return found
}

// TestAttackAddressesInside names addresses of the server's machine and of its networks in each
// member that the documents list, and checks that each is refused.
func TestAttackAddressesInside(t *testing.T) {
	t.Parallel()
	found := members(t)
	for member := range found {
		if places[member] == nil && elsewhere[member] == "" {
			t.Errorf("%s may be an address, and nothing here says what becomes of it", member)
		}
	}
	for member := range places {
		if !found[member] {
			t.Errorf("no request has %s", member)
		}
	}
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), LocalRepositories: new(true), Log: slog.New(slog.DiscardHandler)})
	defer stop()
	c := clientOf(credentials)
	s := &addressed{client: c, t: t}
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(agents(t, "true"), computetest.Serve))
	c.await(t, newest(d), "DEPLOYED")
	s.agent = fmt.Sprintf("/d/%s", d["id"])
	c.call(t, http.StatusOK, "POST", "/v2/auth/providers", provider("calendar", "", ""))
	s.webhook = fmt.Sprintf("/v2/webhooks/%s", c.call(t, http.StatusCreated, "POST", "/v2/webhooks", map[string]any{"url": "https://hooks.example.com/x"})["id"])
	cron := c.call(t, http.StatusOK, "POST", s.agent+"/runs/crons", map[string]any{"assistant_id": "agent", "schedule": "0 0 1 1 *"})
	s.cron = fmt.Sprintf("%s/runs/crons/%s", s.agent, cron["cron_id"])
	for member, send := range places {
		for _, host := range inside {
			for _, scheme := range []string{"http", "https"} {
				if status, answer := send(s, scheme+"://"+host+":8080/x"); status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
					t.Errorf("%s %s://%s: got %d %s", member, scheme, host, status, answer)
				}
			}
		}
	}
}
