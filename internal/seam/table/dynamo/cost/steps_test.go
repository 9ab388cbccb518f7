//go:build cost

package cost_test

import (
	"net/url"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// question is a run that takes only the platform's own time. Its text ends where further
// members may follow.
const question = `{"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "what's the weather in sf?"}]},
	"config": {"configurable": {"token_delay_ms": 0, "node_delay_ms": 0}}`

// runSteps are about a thread with a finished run.
var runSteps = []step{
	{operation: "GetRun"},
	{operation: "ListRuns"},
	{operation: "JoinRun"},
	{operation: "StreamRun", varies: true},
	{operation: "GetThreadState", keep: "checkpoint_id=checkpoint.checkpoint_id"},
	{operation: "GetThreadStateAt"},
	{operation: "FindThreadState", body: `{"checkpoint": {"checkpoint_id": "{checkpoint_id}"}}`},
	{operation: "GetThreadHistory"},
	{operation: "FindThreadHistory", body: `{"limit": 5}`},
	{operation: "CopyThread"},
	{operation: "UpdateThreadState", body: `{"values": {"messages": [{"role": "user", "content": "and tomorrow?"}]}}`},
	{operation: "PruneThreads", body: `{"thread_ids": ["{thread_id}"], "strategy": "keep_latest"}`},
	{operation: "DeleteRun", varies: true},
}

// agentSteps are about the operations of a deployment other than runs.
var agentSteps = []step{
	{operation: "GetOK"},
	{operation: "GetInfo"},

	{operation: "CreateThread", body: `{}`, keep: "thread_id=thread_id"},
	{operation: "GetThread"},
	{operation: "PatchThread", body: `{"metadata": {"user": "ann"}}`},
	{operation: "SearchThreads", body: `{"limit": 10}`, varies: true},
	{operation: "CountThreads", body: `{}`},
	{operation: "CancelRun", before: (*stack).delayed},
	{operation: "CancelRuns", body: `{"thread_id": "{thread_id}", "run_ids": ["{run_id}"]}`, before: (*stack).delayed, after: (*stack).rest},
	{operation: "CreateThreadCron", body: question + `, "schedule": "@yearly"}`, keep: "cron_id=cron_id"},
	{operation: "GetCron"},
	{operation: "PatchCron", body: `{"enabled": false}`},
	{operation: "SearchCrons", body: `{}`},
	{operation: "CountCrons", body: `{}`},
	{operation: "DeleteCron"},
	{operation: "CreateCron", body: question + `, "schedule": "@yearly"}`},
	{operation: "StreamThread", endless: true},
	{operation: "SendCommand", body: `{"id": 1, "method": "state.get", "params": {"namespace": []}}`},
	{operation: "DeleteThread", after: (*stack).rest},

	{operation: "CreateStatelessRun", body: question + `, "on_completion": "keep"}`, keep: "run_id=run_id", after: (*stack).rest},
	{operation: "TakeUpStatelessRun"},
	{operation: "CreateStatelessRuns", body: `[` + question + `}]`, after: (*stack).rest},
	{operation: "CreateStatelessRunWait", body: question + `}`, ends: "put run", after: (*stack).rest},
	{operation: "CreateStatelessRunStream", body: question + `}`, ends: "put run", after: (*stack).rest},

	{operation: "CreateAssistant", body: `{"graph_id": "agent"}`, keep: "assistant_id=assistant_id"},
	{operation: "GetAssistant"},
	{operation: "SearchAssistants", body: `{"graph_id": "agent"}`},
	{operation: "CountAssistants", body: `{}`},
	{operation: "PatchAssistant", body: `{"name": "Ann"}`},
	{operation: "ListAssistantVersions", body: `{}`},
	{operation: "SetLatestAssistantVersion", body: `{"version": 1}`},
	{operation: "GetAssistantSchemas"},
	{operation: "GetAssistantGraph"},
	{operation: "ListAssistantSubgraphs"},
	{operation: "GetAssistantSubgraph"},
	{operation: "DeleteAssistant"},

	{operation: "PutItem", body: `{"namespace": ["users", "ann"], "key": "k", "value": {"likes": "tea"}}`},
	{operation: "GetItem", query: "?key=k&namespace=users.ann"},
	{operation: "SearchItems", body: `{"namespace_prefix": ["users"]}`},
	{operation: "ListNamespaces", body: `{}`},
	{operation: "DeleteItem", body: `{"namespace": ["users", "ann"], "key": "k"}`},
}

// delayed makes a run that does not start yet.
func (s *stack) delayed() {
	s.t.Helper()
	request := ask(fast)
	request["after_seconds"] = 3600
	s.kept["run_id"] = s.start(s.kept["thread_id"], request)
	s.settle()
}

// rest waits until there is no more activity.
func (s *stack) rest() { s.settle() }

// deploymentSteps read the deployed resources.
var deploymentSteps = []step{
	{operation: "GetOK"},
	{operation: "ListDeployments"},
	{operation: "CountFreeDeployments"},
	{operation: "GetDeployment"},
	{operation: "GetTracingProject"},
	{operation: "ListRevisions"},
	{operation: "GetRevision"},
	{operation: "ListEvents"},
	{operation: "ListDeploymentEvents"},
	{operation: "ListRevisionLogs", query: "?type=build"},
	{operation: "ListDeploymentLogs", query: "?deployment_id={deployment_id}&log_type=DEPLOY"},
	{operation: "FindBuildLogs", body: `{"limit": 50}`},
	{operation: "FindAgentLogs", body: `{"limit": 50}`},
	{operation: "FindDeploymentLogs", body: `{"limit": 50}`},
}

// tenancySteps are about permissions.
var tenancySteps = []step{
	{operation: "GetWorkspace"},
	{operation: "PatchWorkspace", body: `{"name": "team"}`},
	{operation: "AddMember", body: `{"user": "ada@example.com", "role": "editor"}`, keep: "member_id=id"},
	{operation: "ListMembers"},
	{operation: "GetMember"},
	{operation: "PatchMember", body: `{"role": "viewer"}`},
	{operation: "RemoveMember"},
	{operation: "CreateTrustRule", body: `{"issuer": "https://ci.example.com", "role": "editor", "claims": {"repository_id": "7"}}`, keep: "rule_id=id"},
	{operation: "ListTrustRules"},
	{operation: "DeleteTrustRule"},
	{operation: "CreateAPIKey", body: `{"name": "ci", "role": "editor"}`, keep: "key_id=id"},
	{operation: "ListAPIKeys"},
	{operation: "RevokeAPIKey"},
	{operation: "ListAuditLog", query: "?limit=5"},
}

// webhookSteps are about a webhook without a receiver.
var webhookSteps = []step{
	{operation: "CreateWebhook", body: `{"url": "https://ci.example.com/hooks", "event_types": ["revision.deployed"]}`, keep: "webhook_id=id"},
	{operation: "ListWebhooks"},
	{operation: "GetWebhook"},
	{operation: "PatchWebhook", body: `{"description": "CI"}`},
	{operation: "RotateWebhookSecret"},
	{operation: "TestWebhook", keep: "delivery_id=id"},
	{operation: "ListWebhookDeliveries"},
	{operation: "ReplayWebhookDelivery", before: (*stack).endDelivery},
	{operation: "DeleteWebhook", after: (*stack).undelivered},
}

// delivery is the key of the steps' delivery.
func (s *stack) delivery() table.Key {
	return keys.WebhookDelivery(s.TenantID, s.kept["webhook_id"], s.kept["delivery_id"])
}

// endDelivery ends a delivery as its last attempt would, which is a day later.
func (s *stack) endDelivery() {
	s.t.Helper()
	s.settle()
	check.Must(s.t, s.table.Transact(s.t.Context(), table.Update{Key: s.delivery(), Set: table.Attrs{"status": "failed"}}))
}

// undelivered waits until the next attempt finds that there is no webhook.
func (s *stack) undelivered() {
	s.t.Helper()
	s.until("the delivery has ended", func() bool { return s.text(s.delivery(), "status") != "pending" })
	s.settle()
}

// authSteps are about imported tokens of users.
var authSteps = []step{
	{operation: "CreateAuthProvider", body: `{"provider_id": "{provider_id}", "name": "Calendar", "client_id": "c", "client_secret": "example",
		"auth_url": "https://accounts.example.com/authorize", "token_url": "https://accounts.example.com/token"}`},
	{operation: "ListAuthProviders"},
	{operation: "GetAuthProvider"},
	{operation: "PatchAuthProvider", body: `{"name": "Team calendar"}`},
	{operation: "ImportAuthToken", body: imported, keep: "token_id=token_id"},
	{operation: "ListAuthTokens", query: "?user_id=ada"},
	{operation: "CheckAuthToken", query: "?user_id=ada&provider_id={provider_id}"},
	{operation: "PatchAuthToken", query: "?user_id=ada", body: `{"provider_account_label": "Work"}`},
	{operation: "Authenticate", body: `{"provider": "{provider_id}", "scopes": [], "user_id": "ada"}`},
	{operation: "CreateAgentConnection", body: `{"oauth_token_id": "{token_id}", "user_id": "ada"}`, keep: "connection_id=id"},
	{operation: "ListAgentConnections"},
	{operation: "DeleteAgentConnection"},
	{operation: "WaitForAuth", query: "?timeout=0", before: (*stack).askForConsent},
	{operation: "AuthCallback", query: "?code=example&state={state}"},
	{operation: "AuthSetup", query: "?error=access_denied&state={state}"},
	{operation: "ListTokenEvents", query: "?user_id=ada"},
	{operation: "DeleteAuthToken", query: "?user_id=ada"},
	{operation: "DeleteAuthTokens", query: "?user_id=ada&provider_id={provider_id}", before: (*stack).importToken},
	{operation: "CheckSlackTokens"},
	{operation: "DeleteSlackTokens"},
	{operation: "DeleteAuthProvider", before: (*stack).importToken},
}

const imported = `{"provider_id": "{provider_id}", "access_token": "example", "user_id": "ada"}`

func (s *stack) importToken() {
	s.t.Helper()
	s.call("POST", "/v2/auth/tokens/import", body{"provider_id": s.kept["provider_id"], "access_token": "example", "user_id": "ada"}, nil)
}

// askForConsent begins a request for a user's consent.
func (s *stack) askForConsent() {
	s.t.Helper()
	var asked struct {
		ID  string `json:"auth_id"`
		URL string `json:"url"`
	}
	s.call("POST", "/v2/auth/authenticate", body{"provider": s.kept["provider_id"], "scopes": []string{}, "user_id": "ada", "force_new": true}, &asked)
	at, err := url.Parse(asked.URL)
	check.Must(s.t, err)
	s.kept["auth_id"], s.kept["state"] = asked.ID, url.QueryEscape(at.Query().Get("state"))
}

// uploadSteps are about a deployment whose sources are uploaded.
var uploadSteps = []step{
	{operation: "RequestUploadURL", body: `{}`, before: (*stack).empty, after: (*stack).erase},
}

// empty makes a deployment that has no sources yet.
func (s *stack) empty() {
	s.t.Helper()
	creation := s.creation("uploaded")
	creation["source"], creation["source_config"], creation["source_revision_config"] = "internal_source", body{}, body{}
	s.kept["deployment_id"], _ = s.create(creation)
	s.settle()
}

// erase removes the deployment.
func (s *stack) erase() {
	s.t.Helper()
	s.call("DELETE", s.fill("/v2/deployments/{deployment_id}"), nil, nil)
	s.gone()
}

// listenerSteps are about a listener that must run one release.
var listenerSteps = []step{
	{operation: "CreateListener", body: `{"compute_type": "k8s", "compute_id": "cluster", "compute_config": {"k8s_namespaces": ["agents"]}}`, keep: "listener_id=id"},
	{operation: "ListListeners"},
	{operation: "GetListener"},
	{operation: "PatchListener", body: `{"version": "2"}`},
	{operation: "ClaimListenerWork", body: `{"holder": "a", "wait": 0}`, keep: "session=session order=work.0.order", before: (*stack).order},
	{operation: "RenewListenerSession", body: `{"session": {session}}`},
	{operation: "ListListenerReleases", body: `{"session": {session}}`},
	{operation: "AppendListenerLogs", body: `{"session": {session}, "deployment_id": "{deployment_id}", "revision_id": "{revision_id}", "lines": ["the image is pulled"]}`},
	{operation: "ReportListenerRelease", body: `{"session": {session}, "deployment_id": "{deployment_id}", "revision_id": "{revision_id}", "order": "{order}", "number": 1,
		"state": "failed", "reason": "IMAGE_UNAVAILABLE", "message": "there is no such image"}`},
	{operation: "DiagnoseListener"},
	{operation: "EndListenerSession", body: `{"session": {session}}`},
	{operation: "DeleteListener", before: (*stack).idleListener},
}

// order makes a deployment that the listener must run, and waits until the listener is
// informed.
func (s *stack) order() {
	s.t.Helper()
	creation := s.creation("elsewhere")
	creation["source"] = "external_docker"
	creation["source_config"] = body{"listener_id": s.kept["listener_id"]}
	creation["source_revision_config"] = body{"image_uri": "registry.example.com/agent:1"}
	id, revision := s.create(creation)
	s.kept["deployment_id"], s.kept["revision_id"] = id, revision
	s.until("the listener is told", func() bool { return s.text(keys.ListenerRelease(s.TenantID, id, revision), "listener") != "" })
}

// idleListener makes a listener that runs nothing.
func (s *stack) idleListener() {
	s.t.Helper()
	var created struct{ ID string }
	s.call("POST", "/v2/listeners", body{"compute_type": "k8s", "compute_id": "another", "compute_config": body{"k8s_namespaces": []string{"agents"}}}, &created)
	s.kept["listener_id"] = created.ID
}
