package keys_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

var due = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// all has the key that each function makes. The texts are the stored texts: another text would
// lose the items that were stored under this one.
var all = map[string]struct {
	got  table.Key
	want table.Key
}{
	"Workspace":                {keys.Workspace("w"), table.Key{PK: "W#w", SK: "WORKSPACE"}},
	"APIKey":                   {keys.APIKey("c0ffee"), table.Key{PK: "KEY#c0ffee", SK: "KEY"}},
	"WorkspaceName":            {keys.WorkspaceName("n"), table.Key{PK: "WORKSPACE-NAMES", SK: "n"}},
	"Member":                   {keys.Member("w", "m"), table.Key{PK: "W#w#MEMBERS", SK: "m"}},
	"APIKeyRecord":             {keys.APIKeyRecord("w", "k"), table.Key{PK: "W#w#API-KEYS", SK: "k"}},
	"TrustRule":                {keys.TrustRule("w", "r"), table.Key{PK: "W#w#TRUST-RULES", SK: "r"}},
	"AuditEntry":               {keys.AuditEntry("w", "e"), table.Key{PK: "W#w#AUDIT", SK: "e"}},
	"SignInCode":               {keys.SignInCode("c0ffee"), table.Key{PK: "SIGN-IN#c0ffee", SK: "CODE"}},
	"Session":                  {keys.Session("c0ffee"), table.Key{PK: "SESSION#c0ffee", SK: "SESSION"}},
	"Use":                      {keys.Use("w", 7), table.Key{PK: "W#w#USE#07", SK: "USE"}},
	"Streams":                  {keys.Streams("w", 7, 29), table.Key{PK: "W#w#STREAMS#07", SK: "TERM#29"}},
	"Visitors":                 {keys.Visitors("w", "d", "192.0.2.1", 29), table.Key{PK: "W#w#VISITORS#d#192.0.2.1", SK: "TERM#29"}},
	"Visits":                   {keys.Visits("w", "d", "", 29), table.Key{PK: "W#w#VISITS#d#", SK: "WINDOW#29"}},
	"ThreadStreams":            {keys.ThreadStreams("w", "d", "t", 29), table.Key{PK: "W#w#THREAD-STREAMS#d#t", SK: "TERM#29"}},
	"Requests":                 {keys.Requests("w", 177), table.Key{PK: "W#w#REQUESTS", SK: "WINDOW#177"}},
	"Strangers":                {keys.Strangers("w", "d", "o", 177), table.Key{PK: "W#w#STRANGERS#d#o", SK: "WINDOW#177"}},
	"KnownCaller":              {keys.KnownCaller("w", "d", "c"), table.Key{PK: "W#w#CALLER#d#c", SK: "CALLER"}},
	"DeploymentCount":          {keys.DeploymentCount("w"), table.Key{PK: "W#w#DEPLOYMENT-COUNT", SK: "COUNT"}},
	"AllCronCount":             {keys.AllCronCount("w"), table.Key{PK: "W#w#CRON-COUNT", SK: "COUNT"}},
	"Answer":                   {keys.Answer("w", "k#1"), table.Key{PK: "W#w#ANSWER#8d706a3e8321610239cf73effbe85f1998985e331ebcbf90e92ff5a1b426f70e", SK: "ANSWER"}},
	"DataKey":                  {keys.DataKey(7), table.Key{PK: "DATA-KEYS", SK: "KEY#000007"}},
	"Deployment":               {keys.Deployment("w", "d"), table.Key{PK: "W#w#D#d", SK: "DEPLOYMENT"}},
	"Revision":                 {keys.Revision("w", "d", "r"), table.Key{PK: "W#w#D#d", SK: "REV#r"}},
	"DeploymentName":           {keys.DeploymentName("w", "n"), table.Key{PK: "W#w#DEPLOYMENT-NAME#n", SK: "NAME"}},
	"TracingProject":           {keys.TracingProject("w", "n"), table.Key{PK: "W#w#TRACING-PROJECT#n", SK: "PROJECT"}},
	"DeploymentListEntry":      {keys.DeploymentListEntry("w", "d"), table.Key{PK: "W#w#DEPLOYMENTS", SK: "d"}},
	"DeletedDeploymentEntry":   {keys.DeletedDeploymentEntry("w", "d"), table.Key{PK: "W#w#DELETED-DEPLOYMENTS", SK: "d"}},
	"FreeDeploymentEntry":      {keys.FreeDeploymentEntry("w", "d"), table.Key{PK: "W#w#FREE-DEPLOYMENTS", SK: "d"}},
	"DeploymentEntry":          {keys.DeploymentEntry("d"), table.Key{PK: "DEPLOYMENT#d", SK: "NAME"}},
	"Build":                    {keys.Build("r"), table.Key{PK: "BUILD#r", SK: "BUILD"}},
	"BuildSlot":                {keys.BuildSlot("w", 7), table.Key{PK: "W#w#BUILD-PLACES", SK: "PLACE#007"}},
	"ReleaseEntry":             {keys.ReleaseEntry("r"), table.Key{PK: "RELEASES", SK: "r"}},
	"RolloutEntry":             {keys.RolloutEntry("d", due), table.Key{PK: "ROLLOUTS", SK: "2026-03-01T12:00:00.000000Z#d"}},
	"AuthProvider":             {keys.AuthProvider("w", "p"), table.Key{PK: "W#w#AUTH-PROVIDERS", SK: "p"}},
	"AuthRequest":              {keys.AuthRequest("w", "r"), table.Key{PK: "W#w#AUTH-REQUEST#r", SK: "REQUEST"}},
	"AuthToken":                {keys.AuthToken("w", "u#1", "t"), table.Key{PK: "W#w#AUTH-USER#u%231", SK: "TOKEN#t"}},
	"AuthTokenCount":           {keys.AuthTokenCount("w"), table.Key{PK: "W#w#AUTH-TOKENS", SK: "COUNT"}},
	"AuthDefault":              {keys.AuthDefault("w", "u", "p", "a#1"), table.Key{PK: "W#w#AUTH-USER#u", SK: "DEFAULT#p#a%231"}},
	"AuthEvent":                {keys.AuthEvent("w", "u#1", "e"), table.Key{PK: "W#w#AUTH-USER#u%231#EVENTS", SK: "e"}},
	"AuthConnection":           {keys.AuthConnection("w", "a#1", "t"), table.Key{PK: "W#w#AUTH-AGENT#a%231", SK: "t"}},
	"AuthConnectionListEntry":  {keys.AuthConnectionListEntry("w", "t", "a#1"), table.Key{PK: "W#w#AUTH-TOKEN#t", SK: "a%231"}},
	"AuthTokenListEntry":       {keys.AuthTokenListEntry("w", "p", "u#1", "t"), table.Key{PK: "W#w#AUTH-PROVIDER#p", SK: "u%231#t"}},
	"GitHubIntegration":        {keys.GitHubIntegration("w", "i"), table.Key{PK: "W#w#GITHUB-INTEGRATIONS", SK: "i"}},
	"GitCredential":            {keys.GitCredential("w", "i"), table.Key{PK: "W#w#GIT-CREDENTIALS", SK: "i"}},
	"IntegrationUse":           {keys.IntegrationUse("w", "i", "d"), table.Key{PK: "W#w#INTEGRATION#i#USES", SK: "d"}},
	"InstallRequest":           {keys.InstallRequest("w", "r"), table.Key{PK: "W#w#INSTALL-REQUEST#r", SK: "REQUEST"}},
	"InstallationBinding":      {keys.InstallationBinding("w", 7), table.Key{PK: "W#w#INSTALLATION#7", SK: "BINDING"}},
	"InstallationBindingEntry": {keys.InstallationBindingEntry("w", 7), table.Key{PK: "INSTALLATIONS#7", SK: "w"}},
	"InstallationGate":         {keys.InstallationGate(7), table.Key{PK: "INSTALLATIONS#7", SK: "GATE"}},
	"PushWatch":                {keys.PushWatch("w", "d"), table.Key{PK: "W#w#D#d", SK: "PUSH-WATCH"}},
	"PushWatchEntry": {keys.PushWatchEntry("w", "github.com/o/r", "main", "d"), table.Key{
		PK: "W#w#PUSHES#39c17009e49c2351a9ca0aa5297718722195f5c6fb5bcb9cc45135fcc0f06279", SK: "d",
	}},
	"PushDelivery": {keys.PushDelivery("w", "d", "id"), table.Key{
		PK: "W#w#D#d#DELIVERY#a56145270ce6b3bebd1dd012b73948677dd618d496488bc608a3cb43ce3547dd", SK: "DELIVERY",
	}},
	"RepositoryNames":       {keys.RepositoryNames("w", 7), table.Key{PK: "W#w#REPOSITORY#7", SK: "NAMES"}},
	"Listener":              {keys.Listener("w", "l"), table.Key{PK: "W#w#LISTENERS", SK: "l"}},
	"ListenerName":          {keys.ListenerName("w", "k8s", "a#1"), table.Key{PK: "W#w#LISTENER-NAME#k8s#a%231", SK: "NAME"}},
	"ListenerUse":           {keys.ListenerUse("w", "l", "n", "d"), table.Key{PK: "W#w#LISTENER#l", SK: "USE#n#d"}},
	"ListenerWake":          {keys.ListenerWake("w", "l"), table.Key{PK: "W#w#LISTENER#l", SK: "BELL"}},
	"ListenerTask":          {keys.ListenerTask("w", "l", "r"), table.Key{PK: "W#w#LISTENER#l#TASKS", SK: "r"}},
	"ListenerRelease":       {keys.ListenerRelease("w", "d", "r"), table.Key{PK: "W#w#D#d#LISTENER-RELEASES", SK: "r"}},
	"ListenerOutput":        {keys.ListenerOutput("w", "d", "r"), table.Key{PK: "W#w#D#d#LISTENER-OUTPUT", SK: "r"}},
	"ListenerReleaseEntry":  {keys.ListenerReleaseEntry("w", "l", "r"), table.Key{PK: "W#w#LISTENER#l#RELEASES", SK: "r"}},
	"Assistant":             {keys.Assistant("w", "d", "a"), table.Key{PK: "W#w#D#d#ASSISTANTS", SK: "ASSISTANT#a"}},
	"AssistantCount":        {keys.AssistantCount("w", "d"), table.Key{PK: "W#w#D#d#ASSISTANTS", SK: "COUNT"}},
	"AssistantVersion":      {keys.AssistantVersion("w", "d", "a", 7), table.Key{PK: "W#w#D#d#ASSISTANTS", SK: "VERSION#a#00000007"}},
	"Thread":                {keys.Thread("w", "d", "t"), table.Key{PK: "W#w#D#d#T#t", SK: "THREAD"}},
	"Run":                   {keys.Run("w", "d", "t", "r"), table.Key{PK: "W#w#D#d#T#t", SK: "RUN#r"}},
	"Event":                 {keys.Event("w", "d", "t", 7), table.Key{PK: "W#w#D#d#T#t", SK: "EV#0000000000000007"}},
	"Checkpoint":            {keys.Checkpoint("w", "d", "t", 7), table.Key{PK: "W#w#D#d#T#t", SK: "CP#000000000007"}},
	"RunRequest":            {keys.RunRequest("w", "d", "t", "r"), table.Key{PK: "W#w#D#d#T#t", SK: "REQ#r"}},
	"RunClient":             {keys.RunClient("w", "d", "t", "r"), table.Key{PK: "W#w#D#d#T#t", SK: "CLIENT#r"}},
	"DueClients":            {keys.DueClients.At("t", due), table.Key{PK: "DUE-CLIENTS#3", SK: "2026-03-01T12:00:00.000000Z#t"}},
	"OriginalCheckpoint":    {keys.OriginalCheckpoint("w", "d", "t", "r"), table.Key{PK: "W#w#D#d#T#t", SK: "CPB#r"}},
	"BusyThread":            {keys.BusyThread("w", "d", "t"), table.Key{PK: "W#w#D#d#BUSY#3", SK: "t"}},
	"CheckpointName":        {keys.CheckpointName("w", "d", "t", "c"), table.Key{PK: "W#w#D#d#T#t", SK: "CPID#c"}},
	"Frame":                 {keys.Frame("w", "d", "t", 7), table.Key{PK: "W#w#D#d#T#t", SK: "FD#000000000007"}},
	"KeptFrame":             {keys.KeptFrame("w", "d", "t", "ns", 7), table.Key{PK: "W#w#D#d#T#t", SK: "FP#0880952ec4ab1be95aa0733055a933d6#000000000007"}},
	"FrameSince":            {keys.FrameSince("w", "d", "t", 7, 3), table.Key{PK: "W#w#D#d#T#t", SK: "FS#000000000007#00000003"}},
	"InThread":              {keys.InThread("w", "d", "t", keys.Frame("w", "d", "t2", 7)), table.Key{PK: "W#w#D#d#T#t", SK: "FD#000000000007"}},
	"ThreadTTL":             {keys.ThreadTTL("w", "d", "t"), table.Key{PK: "W#w#D#d#T#t", SK: "TTL"}},
	"DueThreads":            {keys.DueThreads.At("t", due), table.Key{PK: "DUE-THREADS#3", SK: "2026-03-01T12:00:00.000000Z#t"}},
	"StoreItem":             {keys.StoreItem("w", "d", []string{"a/b", "c"}, "k#"), table.Key{PK: "W#w#D#d#STORE#a%2Fb", SK: "I#a%2Fb/c/#k%23"}},
	"StoreVectors":          {keys.StoreVectors(keys.StoreItem("w", "d", []string{"a", "I#"}, "I#")), table.Key{PK: "W#w#D#d#STORE#a", SK: "V#a/I%23/#I%23"}},
	"StoreItemWith":         {keys.StoreItemWith(table.Key{PK: "W#w#D#d#STORE#a", SK: "V#a/#k"}), keys.StoreItem("w", "d", []string{"a"}, "k")},
	"StoreNamespace":        {keys.StoreNamespace("w", "d", []string{"a", "b"}), table.Key{PK: "W#w#D#d#STORE#a", SK: "N#a/b/"}},
	"StoreNamespaceEntry":   {keys.StoreNamespaceEntry("w", "d", []string{"a", "b"}), table.Key{PK: "W#w#D#d#STORE", SK: "a/b/"}},
	"Cron":                  {keys.Cron("w", "d", "c"), table.Key{PK: "W#w#D#d#CRONS", SK: "c"}},
	"CronCount":             {keys.CronCount("w", "d"), table.Key{PK: "W#w#D#d#CRONS#COUNT", SK: "COUNT"}},
	"DueCrons":              {keys.DueCrons.At("t", due), table.Key{PK: "DUE-CRONS#3", SK: "2026-03-01T12:00:00.000000Z#t"}},
	"ThreadListEntry":       {keys.ThreadListEntry("w", "d", "t", due), table.Key{PK: "W#w#D#d#THREADS#3", SK: "2026-03-01T12:00:00.000000Z#t"}},
	"Permit":                {keys.Permit("w", "d", 3, 7), table.Key{PK: "W#w#D#d#SEATS#03", SK: "SEAT#07"}},
	"PermitWait":            {keys.PermitWait("w", "d", 3, "r"), table.Key{PK: "W#w#D#d#SEATS#03", SK: "WAIT#r"}},
	"Leases":                {keys.Leases.At("r", due), table.Key{PK: "LEASES#05", SK: "2026-03-01T12:00:00.000000Z#r"}},
	"DeploymentEvent":       {keys.DeploymentEvent("w", "d", "e"), table.Key{PK: "W#w#D#d#EVENTS", SK: "e"}},
	"EventEntry":            {keys.EventEntry("w", "d", "e"), table.Key{PK: "W#w#EVENTS#03", SK: "e"}},
	"ListenerEvent":         {keys.ListenerEvent("w", "l", "e"), table.Key{PK: "W#w#LISTENER#l#EVENTS", SK: "e"}},
	"DueListeners":          {keys.DueListeners.At("t", due), table.Key{PK: "DUE-LISTENERS#3", SK: "2026-03-01T12:00:00.000000Z#t"}},
	"Webhook":               {keys.Webhook("w", "h"), table.Key{PK: "W#w#WEBHOOKS", SK: "WEBHOOK#h"}},
	"WorkspaceSecret":       {keys.WorkspaceSecret("w", "s"), table.Key{PK: "W#w#SECRETS", SK: "s"}},
	"SecretUse":             {keys.SecretUse("w", "s", "d"), table.Key{PK: "W#w#SECRET#s", SK: "d"}},
	"SecretUseEntry":        {keys.SecretUseEntry("w", "d", "s"), table.Key{PK: "W#w#D#d#SECRETS", SK: "s"}},
	"WebhookCount":          {keys.WebhookCount("w"), table.Key{PK: "W#w#WEBHOOKS", SK: "COUNT"}},
	"WebhookDelivery":       {keys.WebhookDelivery("w", "h", "m"), table.Key{PK: "W#w#WEBHOOK#h#DELIVERIES", SK: "m"}},
	"DueDeliveries":         {keys.DueDeliveries.At("m", due), table.Key{PK: "WEBHOOK-DELIVERIES#00", SK: "2026-03-01T12:00:00.000000Z#m"}},
	"Execution":             {keys.Execution(string(workflow.Run), "x"), table.Key{PK: "EXECUTIONS#run", SK: "x"}},
	"Encrypted":             {keys.Encrypted("w", "d"), table.Key{PK: "ENCRYPTED", SK: "w#d"}},
	"Trial":                 {keys.Trial("release/r"), table.Key{PK: "SERVER", SK: "TRIAL#release/r"}},
	"ServerAlive":           {keys.ServerAlive(), table.Key{PK: "SERVER", SK: "ALIVE"}},
	"RunningExecutionEntry": {keys.RunningExecutionEntry(string(workflow.Run), "x"), table.Key{PK: "RUNNING-EXECUTIONS", SK: "run#x"}},
}

func TestKeysAreWrittenAsTheyAreStored(t *testing.T) {
	t.Parallel()
	for name, c := range all {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

// TestEveryKeyFunctionIsTested reads the package's own source.
func TestEveryKeyFunctionIsTested(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	check.Must(t, err)
	var made []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		check.Must(t, err)
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && returnsKey(f) {
				made = append(made, f.Name.Name)
			}
			if list, ok := declaration.(*ast.GenDecl); ok && list.Tok == token.VAR {
				made = append(made, exported(list)...)
			}
		}
	}
	slices.Sort(made)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), made); diff != "" {
		t.Errorf("key functions (-tested +there):\n%s", diff)
	}
}

// exported returns the names of the lists of due items.
func exported(list *ast.GenDecl) (names []string) {
	for _, spec := range list.Specs {
		for _, name := range spec.(*ast.ValueSpec).Names {
			if name.IsExported() {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func returnsKey(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && result.Sel.Name == "Key"
}

// TestNoTwoFunctionsMakeOneKey gives all functions the same ids, and names that look like a
// part of a key.
func TestNoTwoFunctionsMakeOneKey(t *testing.T) {
	t.Parallel()
	made := map[table.Key]string{}
	for _, x := range []string{"x", "D", "T", "0197a000-0000-7000-8000-000000000001", "DEPLOYMENT", "NAME", "THREADS"} {
		for name, key := range map[string]table.Key{
			"WorkspaceName": keys.WorkspaceName(x), "Member": keys.Member(x, x), "APIKeyRecord": keys.APIKeyRecord(x, x),
			"TrustRule": keys.TrustRule(x, x), "AuditEntry": keys.AuditEntry(x, x), "Answer": keys.Answer(x, x),
			"Workspace": keys.Workspace(x), "APIKey": keys.APIKey(x), "DataKey": keys.DataKey(len(made)), "Deployment": keys.Deployment(x, x), "Revision": keys.Revision(x, x, x),
			"DeploymentName": keys.DeploymentName(x, x), "TracingProject": keys.TracingProject(x, x),
			"DeploymentListEntry": keys.DeploymentListEntry(x, x), "Build": keys.Build(x), "BuildSlot": keys.BuildSlot(x, len(made)), "ReleaseEntry": keys.ReleaseEntry(x), "RolloutEntry": keys.RolloutEntry(x, due),
			"Thread": keys.Thread(x, x, x), "Run": keys.Run(x, x, x, x), "Event": keys.Event(x, x, x, 1), "Checkpoint": keys.Checkpoint(x, x, x, 1),
			"RunRequest": keys.RunRequest(x, x, x, x), "RunClient": keys.RunClient(x, x, x, x), "DueClients": keys.DueClients.At(x, due), "CheckpointName": keys.CheckpointName(x, x, x, x), "Frame": keys.Frame(x, x, x, 1),
			"KeptFrame": keys.KeptFrame(x, x, x, x, 1), "FrameSince": keys.FrameSince(x, x, x, 1, 1),
			"ThreadListEntry": keys.ThreadListEntry(x, x, x, due), "ThreadTTL": keys.ThreadTTL(x, x, x), "DueThreads": keys.DueThreads.At(x, due),
			"StoreItem": keys.StoreItem(x, x, []string{x}, x), "StoreVectors": keys.StoreVectors(keys.StoreItem(x, x, []string{x}, x)), "StoreNamespace": keys.StoreNamespace(x, x, []string{x}),
			"StoreNamespaceEntry": keys.StoreNamespaceEntry(x, x, []string{x}), "Cron": keys.Cron(x, x, x), "DueCrons": keys.DueCrons.At(x, due),
			"Permit": keys.Permit(x, x, 1, 1), "PermitWait": keys.PermitWait(x, x, 1, x),
			"Leases": keys.Leases.At(x, due), "Execution": keys.Execution(x, x),
			"RunningExecutionEntry": keys.RunningExecutionEntry(x, x),
			"AuthProvider":          keys.AuthProvider(x, x), "AuthRequest": keys.AuthRequest(x, x), "AuthToken": keys.AuthToken(x, x, x),
			"AuthTokenCount": keys.AuthTokenCount(x), "AuthDefault": keys.AuthDefault(x, x, x, x), "AuthEvent": keys.AuthEvent(x, x, x), "AuthConnection": keys.AuthConnection(x, x, x),
			"GitHubIntegration": keys.GitHubIntegration(x, x), "GitCredential": keys.GitCredential(x, x), "InstallRequest": keys.InstallRequest(x, x),
			"InstallationBinding": keys.InstallationBinding(x, 7), "InstallationBindingEntry": keys.InstallationBindingEntry(x, 7),
			"PushWatch": keys.PushWatch(x, x), "PushWatchEntry": keys.PushWatchEntry(x, x, x, x), "PushDelivery": keys.PushDelivery(x, x, x),
			"Listener": keys.Listener(x, x), "ListenerName": keys.ListenerName(x, x, x), "ListenerUse": keys.ListenerUse(x, x, x, x),
			"ListenerWake": keys.ListenerWake(x, x), "ListenerTask": keys.ListenerTask(x, x, x), "ListenerRelease": keys.ListenerRelease(x, x, x),
			"ListenerEvent": keys.ListenerEvent(x, x, x), "DueListeners": keys.DueListeners.At(x, due), "ListenerOutput": keys.ListenerOutput(x, x, x), "ListenerReleaseEntry": keys.ListenerReleaseEntry(x, x, x),
			"RepositoryNames": keys.RepositoryNames(x, 7), "WorkspaceSecret": keys.WorkspaceSecret(x, x), "SecretUse": keys.SecretUse(x, x, x), "SecretUseEntry": keys.SecretUseEntry(x, x, x),
			"DeploymentEvent": keys.DeploymentEvent(x, x, x), "EventEntry": keys.EventEntry(x, x, x), "Webhook": keys.Webhook(x, x),
			"WebhookCount": keys.WebhookCount(x), "WebhookDelivery": keys.WebhookDelivery(x, x, x), "DueDeliveries": keys.DueDeliveries.At(x, due),
			"Assistant": keys.Assistant(x, x, x), "AssistantVersion": keys.AssistantVersion(x, x, x, 1), "IntegrationUse": keys.IntegrationUse(x, x, x),
			"AuthConnectionListEntry": keys.AuthConnectionListEntry(x, x, x), "AuthTokenListEntry": keys.AuthTokenListEntry(x, x, x, x),
		} {
			name += " of " + x
			if other, taken := made[key]; taken {
				t.Errorf("%s and %s are both %v", name, other, key)
			}
			made[key] = name
		}
	}
}

func TestIdsAreReadBackFromKeys(t *testing.T) {
	t.Parallel()
	const w, d, r = "0197a000-0000-7000-8000-000000000001", "0197a000-0000-7000-8000-000000000002", "0197a000-0000-7000-8000-000000000003"
	if got := keys.DeploymentID(keys.Deployment(w, d)); got != d {
		t.Errorf("DeploymentID: got %s", got)
	}
	if got := keys.RevisionID(keys.Revision(w, d, r)); got != r {
		t.Errorf("RevisionID: got %s", got)
	}
	if got, err := keys.WorkspaceOf(keys.InstallationBinding(w, 7)); err != nil || got != w {
		t.Errorf("WorkspaceOf: got %s (%v)", got, err)
	}
	if got := keys.DeploymentID(keys.PushWatch(w, d)); got != d {
		t.Errorf("DeploymentID of a watch: got %s", got)
	}
	if got := keys.RunID(keys.Run(w, d, "t", r)); got != r {
		t.Errorf("RunID: got %s", got)
	}
	if got := keys.AssistantID(keys.Assistant(w, d, r)); got != r {
		t.Errorf("AssistantID: got %s", got)
	}
	if got, err := keys.AssistantVersionNumber(keys.AssistantVersion(w, d, r, 7)); got != 7 || err != nil {
		t.Errorf("AssistantVersionNumber: got %d (%v)", got, err)
	}
	if got := keys.AuthTokenID(keys.AuthToken(w, "u", r)); got != r {
		t.Errorf("AuthTokenID: got %s", got)
	}
	if got := keys.ListenerID(keys.Listener(w, r)); got != r {
		t.Errorf("ListenerID: got %s", got)
	}
	if got, err := keys.ParseListener(keys.Listener(w, r)); err != nil || got != (keys.ListenerParts{Workspace: w, Listener: r}) {
		t.Errorf("ParseListener: got %v (%v)", got, err)
	}
	if got := keys.ListenerUseDeployment(keys.ListenerUse(w, r, "n", d)); got != d {
		t.Errorf("ListenerUseDeployment: got %s", got)
	}
	if got := keys.ListenerTaskRevision(keys.ListenerTask(w, d, r)); got != r {
		t.Errorf("ListenerTaskRevision: got %s", got)
	}
	if got := keys.EventID(keys.DeploymentEvent(w, d, r)); got != r {
		t.Errorf("EventID: got %s", got)
	}
	if got := keys.WebhookID(keys.Webhook(w, r)); got != r {
		t.Errorf("WebhookID: got %s", got)
	}
	delivery, err := keys.ParseWebhookDelivery(keys.WebhookDelivery(w, d, r))
	if want := (keys.DeliveryParts{Workspace: w, Log: d, Delivery: r}); err != nil || delivery != want {
		t.Errorf("ParseWebhookDelivery: got %v (%v)", delivery, err)
	}
	if _, err := keys.ParseWebhookDelivery(keys.Deployment(w, d)); err == nil {
		t.Error("ParseWebhookDelivery takes a deployment's key")
	}
	release, err := keys.ParseListenerRelease(keys.ListenerRelease(w, d, r))
	if want := (keys.RevisionParts{Workspace: w, Deployment: d, Revision: r}); err != nil || release != want {
		t.Errorf("ParseListenerRelease: got %v (%v)", release, err)
	}
	revision, err := keys.ParseRevision(keys.Revision(w, d, r))
	if want := (keys.RevisionParts{Workspace: w, Deployment: d, Revision: r}); err != nil || revision != want {
		t.Errorf("ParseRevision: got %v (%v)", revision, err)
	}
	deployment, err := keys.ParseRevision(keys.Deployment(w, d))
	if want := (keys.RevisionParts{Workspace: w, Deployment: d}); err != nil || deployment != want {
		t.Errorf("ParseRevision of a deployment: got %v (%v)", deployment, err)
	}
	run, err := keys.ParseRun(keys.Run(w, d, "t", r))
	if want := (keys.RunParts{Workspace: w, Deployment: d, Thread: "t", Run: r}); err != nil || run != want {
		t.Errorf("ParseRun: got %v (%v)", run, err)
	}
	if client, err := keys.ParseRunClient(keys.RunClient(w, d, "t", r)); err != nil || client != run {
		t.Errorf("ParseRunClient: got %v (%v)", client, err)
	}
	for _, want := range []int64{0, 7, 999_999_999_999} {
		if got, err := keys.CheckpointNumber(keys.Checkpoint(w, d, "t", want)); err != nil || got != want {
			t.Errorf("CheckpointNumber: got %d (%v), want %d", got, err, want)
		}
		if got, err := keys.FrameSinceNumber(keys.FrameSince(w, d, "t", want, 3)); err != nil || got != want {
			t.Errorf("FrameSinceNumber: got %d (%v), want %d", got, err, want)
		}
	}
}

// TestParsersRefuseOtherKeys gives each parser the keys of all others.
func TestParsersRefuseOtherKeys(t *testing.T) {
	t.Parallel()
	for name, c := range all {
		if parts, err := keys.ParseRevision(c.got); (err == nil) != (name == "Revision" || name == "Deployment" || name == "PushWatch") {
			t.Errorf("ParseRevision of %s: got %v (%v)", name, parts, err)
		}
		if parts, err := keys.ParseListenerRelease(c.got); (err == nil) != (name == "ListenerRelease") {
			t.Errorf("ParseListenerRelease of %s: got %v (%v)", name, parts, err)
		}
		if parts, err := keys.ParseListener(c.got); (err == nil) != (name == "Listener") {
			t.Errorf("ParseListener of %s: got %v (%v)", name, parts, err)
		}
		if parts, err := keys.ParseRun(c.got); (err == nil) != (name == "Run") {
			t.Errorf("ParseRun of %s: got %v (%v)", name, parts, err)
		}
		if parts, err := keys.ParseRunClient(c.got); (err == nil) != (name == "RunClient") {
			t.Errorf("ParseRunClient of %s: got %v (%v)", name, parts, err)
		}
		if number, err := keys.CheckpointNumber(c.got); (err == nil) != (name == "Checkpoint") {
			t.Errorf("CheckpointNumber of %s: got %v (%v)", name, number, err)
		}
		if number, err := keys.FrameSinceNumber(c.got); (err == nil) != (name == "FrameSince") {
			t.Errorf("FrameSinceNumber of %s: got %v (%v)", name, number, err)
		}
	}
}

// TestEveryPartitionBeginsWithItsWorkspace checks the rule that separates tenants. The
// exceptions are those of the package's documentation.
func TestKeysOfEncryptedDeployments(t *testing.T) {
	t.Parallel()
	if of, ok := keys.ParseEncrypted(keys.Encrypted("w", "d")); !ok || of != (keys.DeploymentParts{Workspace: "w", Deployment: "d"}) {
		t.Errorf("got %v, %v", of, ok)
	}
	if _, ok := keys.ParseEncrypted(table.Key{PK: "W#w", SK: "w#d"}); ok {
		t.Error("the key of something else is read")
	}
	for key, want := range map[table.Key]keys.Part{
		keys.Run("w", "d", "t", "r"):                          keys.OfThread,
		keys.Assistant("w", "d", "a"):                         keys.OfAssistants,
		keys.Cron("w", "d", "c"):                              keys.OfCrons,
		keys.StoreItem("w", "d", []string{"a", "b"}, "k"):     keys.OfStore,
		keys.Deployment("w", "d"):                             "",
		keys.Permit("w", "d", 1, 1):                           "",
		keys.DeploymentEvent("w", "d", "e"):                   "",
		keys.StoreNamespaceEntry("w", "d", []string{"a"}):     keys.OfStore,
		keys.WebhookDelivery("w", "l", "x"):                   "",
		keys.RunningExecutionEntry(string(workflow.Run), "x"): "",
	} {
		if of, part, ok := keys.ParsePart(key); part != want || ok != (want != "") || (ok && of.Deployment != "d") {
			t.Errorf("%v: got %v, %q, %v", key, of, part, ok)
		}
	}
	at, err := keys.ThreadOf(keys.Event("w", "d", "t", 1))
	if _, none := keys.ThreadOf(keys.Cron("w", "d", "c")); err != nil || none == nil || at != keys.Thread("w", "d", "t") {
		t.Errorf("got %v, %v", at, err)
	}
}

func TestEveryPartitionBeginsWithItsWorkspace(t *testing.T) {
	t.Parallel()
	without := []string{"APIKey", "Build", "DataKey", "DeploymentEntry", "DueClients", "DueCrons", "DueDeliveries", "DueListeners", "DueThreads", "Encrypted", "Execution", "InstallationBindingEntry", "InstallationGate", "Leases", "ReleaseEntry", "RolloutEntry", "RunningExecutionEntry", "ServerAlive", "Session", "SignInCode", "Trial", "WorkspaceName"}
	for name, c := range all {
		inWorkspace := c.got.PK == "W#w" || strings.HasPrefix(c.got.PK, "W#w#")
		if inWorkspace == slices.Contains(without, name) {
			t.Errorf("%s is %v", name, c.got)
		}
	}
}

// TestOnlyThisPackageWritesKeys looks through the source for another place that puts together a
// workspace's partition.
func TestOnlyThisPackageWritesKeys(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join("..", "..", "record", "keys") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, `"W#`) {
				t.Errorf("%s holds %s", path, text.Value)
			}
			return true
		})
		return nil
	})
	check.Must(t, err)
}
