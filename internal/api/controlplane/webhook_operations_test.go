package controlplane_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Rules about webhooks.
const (
	webhookShapes   = "Webhooks: every operation answers with its success status in the shape of the interface, at the root and under `/api-host`."
	webhookRoles    = "Webhooks: a viewer may look, an editor may not delete."
	webhookSecrets  = "A webhook's `secret` is shown when it is created and when it is replaced, and nowhere else."
	webhookSigned   = "Webhooks are told of the events that they want, signed as Standard Webhooks says; while a secret is replaced, both sign."
	webhookRetried  = "Webhooks: what is not answered with 2xx is sent again under its `webhook-id`; redirects are not followed; 410 disables; the deliveries say so."
	webhookReplayed = "Webhooks: a delivery that has ended is sent once more by `replay`, a message of its own by `test`; while one is on its way, or the webhook disabled, that is a 409."
	webhookRestart  = "Webhooks: a message that was on its way when the server was killed is sent by the next one."
	webhookPrivate  = "Webhooks: addresses that are not public are a 400, and are refused when a name is resolved to one, unless the server allows them."
	webhookRules    = "Webhooks: `url`, `event_types`, `description`, `enabled` are created and PATCHed; unknown types are a 422; a workspace has at most 10."
	webhookOthers   = "Webhooks of another workspace are a 404, as those that do not exist; no event of another workspace is sent."
)

const webhookPath = "/v2/webhooks/{webhook_id}"

// webhookOperation describes how the tests exercise one operation.
type webhookOperation struct {
	body   object
	status int
	shape  valueShape
	verb   workspace.Verb
	// kind is the kind of resource that the permission is named after.
	kind string
}

var (
	deploymentEventShape = members(map[string]valueShape{
		"id": uuid, "type": text, "timestamp": dateTime, "data": members(map[string]valueShape{
			"compute_id": orNull(text), "listener_id": orNull(uuid), "deployment_id": orNull(uuid), "deployment_name": orNull(text), "revision_id": orNull(uuid), "status": orNull(text), "status_reason": orNull(text),
			"status_message": orNull(text),
		}),
	})
	eventsShape    = members(map[string]valueShape{"resources": listOf(deploymentEventShape), "cursor": orNull(text)})
	webhookMembers = map[string]valueShape{
		"id": uuid, "url": text, "event_types": listOf(text), "description": text, "enabled": boolean, "disabled_reason": orNull(text),
		"failing_since": orNull(dateTime), "created_at": dateTime, "updated_at": dateTime,
	}
	webhookShape    = members(webhookMembers)
	newWebhookShape = func(value any) string {
		shown, _ := value.(object)
		if secret, _ := shown["secret"].(string); !strings.HasPrefix(secret, "whsec_") {
			return "there is no secret"
		}
		rest := object{}
		for name, member := range shown {
			if name != "secret" {
				rest[name] = member
			}
		}
		return webhookShape(rest)
	}
	deliveryShape = members(map[string]valueShape{
		"id": uuid, "message_id": uuid, "event_type": text, "status": oneOf("pending succeeded failed"), "attempts": integer, "response_status": orNull(integer),
		"failure": orNull(text), "next_attempt_at": orNull(dateTime), "payload": anyObject, "created_at": dateTime, "updated_at": dateTime,
	})
)

// webhookOperations has an entry for every operation of webhooks, and of the events of a workspace.
var webhookOperations = map[string]webhookOperation{
	"GET /v2/events":   {status: http.StatusOK, shape: eventsShape, verb: workspace.Read, kind: "events"},
	"GET /v2/webhooks": {status: http.StatusOK, shape: resourcesOf(webhookShape), verb: workspace.Read},
	"POST /v2/webhooks": {
		body: object{"url": "https://ci.example.com/another"}, status: http.StatusCreated, shape: newWebhookShape, verb: workspace.Create,
	},
	"GET " + webhookPath:                     {status: http.StatusOK, shape: webhookShape, verb: workspace.Read},
	"PATCH " + webhookPath:                   {body: object{"description": "other"}, status: http.StatusOK, shape: webhookShape, verb: workspace.Update},
	"DELETE " + webhookPath:                  {status: http.StatusNoContent, shape: empty, verb: workspace.Delete},
	"POST " + webhookPath + "/rotate-secret": {status: http.StatusOK, shape: newWebhookShape, verb: workspace.Create},
	"POST " + webhookPath + "/test":          {status: http.StatusAccepted, shape: deliveryShape, verb: workspace.Create},
	"GET " + webhookPath + "/deliveries": {
		status: http.StatusOK, shape: members(map[string]valueShape{"resources": listOf(deliveryShape), "cursor": orNull(text)}), verb: workspace.Read,
	},
	"POST " + webhookPath + "/deliveries/{delivery_id}/replay": {status: http.StatusAccepted, shape: deliveryShape, verb: workspace.Create},
}

func (o webhookOperation) sent() any {
	if o.body == nil {
		return nil
	}
	return o.body
}

// webhookStage holds the resources for the tests of operations: a webhook with a delivery that
// has ended.
type webhookStage struct {
	*hookedFixture
	webhook, delivery string
}

func webhookStaged(t *testing.T) *webhookStage {
	t.Helper()
	f := setUpHooked(t)
	path, _ := f.hook(t, object{})
	f.create(t, fromGit("weather"))
	delivery := f.delivered(t, path, 1)[0]
	return &webhookStage{f, strings.TrimPrefix(path, "/v2/webhooks/"), delivery["id"].(string)}
}

// at returns the method and path of an operation on the stage.
func (s *webhookStage) at(name string) (method, path string) {
	method, path, _ = strings.Cut(name, " ")
	return method, strings.NewReplacer("{webhook_id}", s.webhook, "{delivery_id}", s.delivery).Replace(path)
}

func TestEveryOperationOfWebhooksSucceeds(t *testing.T) {
	t.Parallel()
	rule(t, webhookShapes)
	rule(t, eventShapes)
	for name, o := range webhookOperations {
		for _, base := range bases {
			t.Run(base+" "+name, func(t *testing.T) {
				t.Parallel()
				s := webhookStaged(t)
				method, path := s.at(name)
				answer := s.call(t, method, base+path, o.sent())
				wantStatus(t, answer, o.status)
				wantShape(t, answer, o.shape)
			})
		}
	}
}

func TestRolesOfWebhooks(t *testing.T) {
	t.Parallel()
	rule(t, "Roles: what a role lacks is a 403.")
	rule(t, webhookRoles)
	may := map[workspace.Role][]workspace.Verb{
		workspace.Admin:  {workspace.Read, workspace.Create, workspace.Update, workspace.Delete},
		workspace.Editor: {workspace.Read, workspace.Create, workspace.Update}, workspace.Viewer: {workspace.Read},
	}
	for role, allowed := range may {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			s := webhookStaged(t)
			caller := s.issue(t, role)
			for _, deletes := range []bool{false, true} { // deletions come last
				for name, o := range webhookOperations {
					if (o.verb == workspace.Delete) != deletes || strings.HasSuffix(name, "/test") && slices.Contains(allowed, o.verb) {
						continue
					}
					method, path := s.at(name)
					answer := s.send(t, method, path, o.sent(), caller.headers())
					if slices.Contains(allowed, o.verb) {
						wantStatus(t, answer, o.status)
						if s.delivery != "" && strings.HasSuffix(name, "/replay") {
							s.delivered(t, "/v2/webhooks/"+s.webhook, 1)
						}
						continue
					}
					wantDetail(t, answer, http.StatusForbidden,
						`The credentials do not allow this: the role "`+string(role)+`" lacks the permission webhooks:`+string(o.verb)+".")
				}
			}
		})
	}
}

// TestWebhooksOfOthers calls every operation without credentials, for webhooks of another
// workspace, and for webhooks that do not exist.
func TestWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	rule(t, "Missing or bad credentials are a 401, a tenant that the key does not belong to is a 403, before anything else is looked at.")
	rule(t, "What belongs to another workspace is a 404, as what does not exist.")
	rule(t, webhookOthers)
	s := webhookStaged(t)
	for name, o := range webhookOperations {
		method, path := s.at(name)
		wantDetail(t, s.send(t, method, path, o.sent(), nil), http.StatusUnauthorized, "The header X-Api-Key is missing.")
		if !strings.Contains(name, "{webhook_id}") {
			continue
		}
		wantDetail(t, s.send(t, method, path, o.sent(), s.other.headers()), http.StatusNotFound, "Webhook ID "+s.webhook+" not found.")
		unknown := strings.Replace(path, s.webhook, unknownID, 1)
		wantDetail(t, s.call(t, method, unknown, o.sent()), http.StatusNotFound, "Webhook ID "+unknownID+" not found.")
		if strings.Contains(name, "{delivery_id}") {
			unknown = strings.Replace(path, s.delivery, unknownID, 1)
			wantDetail(t, s.call(t, method, unknown, o.sent()), http.StatusNotFound, "Delivery ID "+unknownID+" not found.")
		}
	}
	s.receiver.take()
	created := s.send(t, "POST", "/v2/deployments", fromGit("strange"), s.other.headers())
	wantStatus(t, created, http.StatusCreated)
	for _, path := range []string{"/v2/webhooks", "/v2/events"} {
		if list, _ := s.send(t, "GET", path, nil, s.other.headers()).member("resources").([]any); path == "/v2/webhooks" && len(list) != 0 {
			t.Errorf("another workspace sees %v", list)
		}
	}
	wantStatus(t, s.call(t, "POST", "/v2/webhooks/"+s.webhook+"/test", nil), http.StatusAccepted)
	for got := s.receiver.next(t); got.event["type"] != "webhook.test"; got = s.receiver.next(t) {
		if name := (response{body: got.event}).id("data", "deployment_name"); name != "weather" {
			t.Errorf("an event of another workspace was sent: %v", got.event)
		}
	}
}
