//go:build cost

package cost_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// compact writes "3 x" for an entry that occurs three times in a row.
func compact(list []string) []string {
	var short []string
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(s string) bool { return s != list[0] })
		if n < 0 {
			n = len(list)
		}
		if n > 1 {
			short = append(short, fmt.Sprintf("%d x %s", n, list[0]))
		} else {
			short = append(short, list[0])
		}
		list = list[n:]
	}
	return short
}

// x stands in a key for the part that differs from one item to the next.
const x = "*"

// noun is the name of a kind of items, and the pattern of their keys. If a query can mean
// several nouns, the first one is used.
type noun struct {
	name string
	key  table.Key
}

var useUntil, _ = keys.UseUntil(x, time.Time{})

var nouns = []noun{
	{"workspace", keys.Workspace(x)},
	{"workspace's name", keys.WorkspaceName(x)},
	{"member", keys.Member(x, x)},
	{"API key", keys.APIKey(x)},
	{"API key's record", keys.APIKeyRecord(x, x)},
	{"trust rule", keys.TrustRule(x, x)},
	{"audit entry", keys.AuditEntry(x, x)},
	{"answer", keys.Answer(x, x)},
	{"data key", keys.DataKey(1)},
	{"deployment", keys.Deployment(x, x)},
	{"revision", keys.Revision(x, x, x)},
	{"push watch", keys.PushWatch(x, x)},
	{"name", keys.DeploymentName(x, x)},
	{"project", keys.TracingProject(x, x)},
	{"deployments", keys.DeploymentListEntry(x, x)},
	{"deleted deployments", keys.DeletedDeploymentEntry(x, x)},
	{"free deployments", keys.FreeDeploymentEntry(x, x)},
	{"deployments by id", keys.DeploymentEntry(x)},
	{"build", keys.Build(x)},
	{"releases", keys.ReleaseEntry(x)},
	{"rollouts", keys.RolloutEntry(x, time.Time{})},
	{"deployment's events", keys.DeploymentEvent(x, x, x)},
	{"workspace's events", keys.EventEntry(x, x, x)},
	{"auth provider", keys.AuthProvider(x, x)},
	{"auth request", keys.AuthRequest(x, x)},
	{"auth token", keys.AuthToken(x, x, x)},
	{"count of auth tokens", keys.AuthTokenCount(x)},
	{"auth default", keys.AuthDefault(x, x, x, x)},
	{"auth event", keys.AuthEvent(x, x, x)},
	{"auth connection", keys.AuthConnection(x, x, x)},
	{"token's connections", keys.AuthConnectionListEntry(x, x, x)},
	{"provider's tokens", keys.AuthTokenListEntry(x, x, x, x)},
	{"secret", keys.WorkspaceSecret(x, x)},
	{"secret's use", keys.SecretUse(x, x, x)},
	{"deployment's uses of secrets", keys.SecretUseEntry(x, x, x)},
	{"GitHub integration", keys.GitHubIntegration(x, x)},
	{"git credential", keys.GitCredential(x, x)},
	{"integration's use", keys.IntegrationUse(x, x, x)},
	{"install request", keys.InstallRequest(x, x)},
	{"installation's binding", keys.InstallationBinding(x, 7)},
	{"installation's workspaces", keys.InstallationBindingEntry(x, 7)},
	{"push watches", keys.PushWatchEntry(x, x, x, x)},
	{"push delivery", keys.PushDelivery(x, x, x)},
	{"repository's names", keys.RepositoryNames(x, 7)},
	{"listener", keys.Listener(x, x)},
	{"listener's name", keys.ListenerName(x, x, x)},
	{"listener's use", keys.ListenerUse(x, x, x, x)},
	{"listener's wake key", keys.ListenerWake(x, x)},
	{"listener's task", keys.ListenerTask(x, x, x)},
	{"count of crons", keys.CronCount(x, x)},
	{"count of all crons", keys.AllCronCount(x)},
	{"count of deployments", keys.DeploymentCount(x)},
	{"workspace's use", keys.Use(x, 7)},
	{"workspace's use until a month", useUntil},
	{"workspace's streams", keys.Streams(x, 7, 7)},
	{"thread's streams", keys.ThreadStreams(x, x, x, 7)},
	{"workspace's requests", keys.Requests(x, 7)},
	{"count of assistants", keys.AssistantCount(x, x)},
	{"release's allowance", keys.ListenerOutput(x, x, x)},
	{"listener's release", keys.ListenerRelease(x, x, x)},
	{"listener's releases", keys.ListenerReleaseEntry(x, x, x)},
	{"webhook", keys.Webhook(x, x)},
	{"webhook count", keys.WebhookCount(x)},
	{"webhook delivery", keys.WebhookDelivery(x, x, x)},
	{"due deliveries", keys.DueDeliveries.At(x, time.Time{})},
	{"assistant", keys.Assistant(x, x, x)},
	{"assistant's version", keys.AssistantVersion(x, x, x, 7)},
	{"thread", keys.Thread(x, x, x)},
	{"run", keys.Run(x, x, x, x)},
	{"run's request", keys.RunRequest(x, x, x, x)},
	{"run's client", keys.RunClient(x, x, x, x)},
	{"events", keys.Event(x, x, x, 7)},
	{"checkpoint", keys.Checkpoint(x, x, x, 7)},
	{"amended checkpoint", keys.OriginalCheckpoint(x, x, x, x)},
	{"checkpoint's name", keys.CheckpointName(x, x, x, x)},
	{"frame", keys.Frame(x, x, x, 7)},
	{"kept frame", keys.KeptFrame(x, x, x, x, 7)},
	{"frame since", keys.FrameSince(x, x, x, 7, 7)},
	{"time to live", keys.ThreadTTL(x, x, x)},
	{"busy threads", keys.BusyThread(x, x, x)},
	{"threads", keys.ThreadListEntry(x, x, x, time.Time{})},
	{"due threads", keys.DueThreads.At(x, time.Time{})},
	{"store item", keys.StoreItem(x, x, []string{x}, x)},
	{"store namespace", keys.StoreNamespace(x, x, []string{x})},
	{"store namespaces", keys.StoreNamespaceEntry(x, x, []string{x})},
	{"cron", keys.Cron(x, x, x)},
	{"due crons", keys.DueCrons.At(x, time.Time{})},
	{"leases", keys.Leases.At(x, time.Time{})},
	{"due clients", keys.DueClients.At(x, time.Time{})},
	{"due listeners", keys.DueListeners.At(x, time.Time{})},
}

// anything matches a part of a key that identifies the item: a shard, a number, a digest or a
// time, or the encoded form of x.
var anything = regexp.MustCompile(`^([0-9]+|[0-9a-f]{32,}|[0-9]{4}-.*|(%2A|\*)/?)$`)

// unknown begins the result of kindOf for a key that it does not know.
const unknown = "unknown "

// kindOf names the kind of the item under a key. For a query, sk is the beginning of the sort
// keys that the query finds.
func kindOf(pk, sk string) string {
	switch { // items that package dynamo keeps for its own use
	case strings.HasPrefix(pk, "BODY-CLAIMS#"):
		return "body claim"
	case strings.Contains(pk, "#BODY#"):
		return "body"
	}
	for _, n := range nouns {
		if alikeParts(n.key.PK, pk, false) && alikeParts(n.key.SK, sk, true) {
			return n.name
		}
	}
	return unknown + pk + " " + sk
}

// alikeParts reports whether a text matches a pattern, or is the beginning of a text that
// does.
func alikeParts(pattern, text string, begins bool) bool {
	parts, these := strings.Split(pattern, "#"), strings.Split(text, "#")
	if len(these) > len(parts) || !begins && len(these) < len(parts) {
		return false
	}
	for i, part := range these {
		begun := begins && i == len(these)-1 && strings.HasPrefix(parts[i], part)
		if !anything.MatchString(parts[i]) && part != parts[i] && !begun {
			return false
		}
	}
	return true
}
