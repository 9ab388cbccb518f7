package archtest_test

import (
	"go/ast"
	"path"
	"slices"
	"testing"
)

// outliveCallers are the functions of the domain and of the interfaces that go on after their
// caller, beside the work that an outbox of record does after its commit. Each has its reason.
var outliveCallers = map[string]string{
	"internal/agent/assistant.Delete":           "a deletion cannot be repeated once the assistant is gone",
	"internal/agent/run.Dispatch":               "the run is stored, and some callers wait for its start",
	"internal/agent/run.FreePermitOfDeletedRun": "an attempt that was cut off cleans up",
	"internal/agent/run.Rescue":                 "a rescue that has begun is completed within a limit",
	"internal/agent/run.miss":                   "a cancel that has begun is completed",
	"internal/agent/thread.Copy":                "takes back a copy that failed",
	"internal/api/agentserver.disconnected":     "the client has gone, which is the reason of the work",
	"internal/api/agentserver/description.Of":   "callers share one question to the agent",
	"internal/api/agentserver/websocket.next":   "the socket's close says why it ends",
	"internal/api/agentserver.takeBack":         "takes back threads of a request that failed",
	"internal/api/agentserver.deleteCreated":    "takes back a thread of a request that was refused",
	"internal/api/console.close":                "a session ends although the page is left",
	"internal/api/oidc.refresh":                 "callers share one answer of the issuer",
	"internal/api/web.outliving":                "an answer that is kept under a key is completed",
	"internal/api/web.endAttempt":               "an answer that is kept under a key is completed",
	"internal/control/deployment.RestartUsers":  "the values of the secret have changed",
	"internal/control/integration.Uninstall":    "takes back a removal that failed at GitHub",
	"internal/control/integration.token":        "callers share one token",
	"internal/control/push.ownTime":             "the sender waits ten seconds only",
	"internal/jobs/rollout.undoStep":            "a step that was cut off takes back its work",
	"internal/jobs/rollout.undoStart":           "a step that was cut off takes back its work",
	"internal/jobs/runner.lastWrite":            "the end of an attempt is written although the process ends",
	"internal/record/record.apply":              "the work after a commit",
	"internal/tenant/apikey.used":               "a request does not wait for the note of its key",
	"internal/tenant/authservice.Complete":      "the code is used up",
	"internal/tenant/authservice.lead":          "the refresh token is used up",
	"internal/tenant/quota.CountStored":         "the objects are stored or deleted already",
	"internal/tenant/quota.hold":                "a place is kept for as long as its stream",
	"internal/tenant/quota.undo":                "a place is given back although its stream has ended",
	"internal/tenant/quota.write":               "a place is given back although its caller has gone",
	"internal/tenant/webhook.attempt":           "the message was sent, and would be sent again without the note",
}

// TestWorkAfterACommitIsInAnOutbox checks that only listed functions detach themselves from their
// caller: what follows a commit belongs in record.Outbox.Then, which does this for all.
func TestWorkAfterACommitIsInAnOutbox(t *testing.T) {
	t.Parallel()
	domain := []string{"agent", "api", "control", "jobs", "record", "tenant"}
	used := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		function, ok := node.(*ast.FuncDecl)
		if !ok || f.isTest() || !slices.Contains(domain, folderOf(path.Dir(f.name))) {
			return
		}
		name := path.Dir(f.name) + "." + function.Name.Name
		ast.Inspect(function, func(inner ast.Node) bool {
			expression, ok := inner.(ast.Expr)
			if !ok || !isSelector(expression, "context", "WithoutCancel") {
				return true
			}
			if used[name] = true; outliveCallers[name] == "" {
				t.Errorf("%s: %s goes on after its caller: use record.Outbox.Then, or list it with its reason", f.at(inner), name)
			}
			return true
		})
	})
	for name := range outliveCallers {
		if !used[name] {
			t.Errorf("%s goes on after no caller any more: take it off the list", name)
		}
	}
}
