package push_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

const agent = "https://github.com/acme/agent"

func TestAPushBuildsWhatWatchesItsBranch(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, "git@github.com:Acme/Agent.git", "main", true)
	f.watch(t, workspace, d2, agent+".git", "main", true)
	f.watch(t, workspace, d3, agent, "next", true)
	f.watch(t, other, d3, agent, "main", true) // its workspace does not have the installation
	wantBuilds(t, f.push(t, nil), "1 d1 2222", "1 d2 2222")
	wantBuilds(t, f.push(t, map[string]any{"ref": "refs/heads/next", "after": strings.Repeat("3", 64)}), "1 d3 3333")
	f.bind(t, other)
	wantBuilds(t, f.push(t, nil), "1 d1 2222", "1 d2 2222", "2 d3 2222")
	check.Must(t, f.integrations.Removed(t.Context(), 77))
	wantBuilds(t, f.push(t, nil))
}

func TestPushesThatBuildNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	f.watch(t, workspace, d2, agent, "refs/tags/v1", true)
	f.watch(t, workspace, d3, agent, "main", false)
	for name, changes := range map[string]map[string]any{
		"another branch":                {"ref": "refs/heads/feature/main"},
		"a branch in other letters":     {"ref": "refs/heads/Main"},
		"a tag":                         {"ref": "refs/tags/main"},
		"the tag that is named":         {"ref": "refs/tags/v1"},
		"a branch named like that tag":  {"ref": "refs/heads/refs/tags/v1"},
		"a bare name":                   {"ref": "main"},
		"no ref":                        {"ref": nil},
		"an empty branch":               {"ref": "refs/heads/"},
		"a branch is deleted":           {"deleted": true, "after": none},
		"deleted, as others say":        {"deleted": nil, "after": none},
		"deleted, and that is all":      {"deleted": true},
		"not a commit":                  {"after": "main; rm -rf /"},
		"no commit":                     {"after": nil},
		"another repository":            named("acme/other", nil),
		"a fork":                        named("eve/agent", map[string]any{"repository.id": 99, "repository.fork": true}),
		"another host":                  {"repository.clone_url": "https://git.example.com/acme/agent", "repository.ssh_url": "git@git.example.com:acme/agent", "repository.html_url": "https://git.example.com/acme/agent"},
		"no repository":                 {"repository": nil},
		"no installation":               {"installation": nil},
		"another installation":          {"installation.id": 78},
		"an installation without an id": {"installation.id": 0},
	} {
		if got := f.push(t, changes); len(got) != 0 {
			t.Errorf("%s: built %v", name, got)
		}
	}
	wantBuilds(t, f.push(t, map[string]any{"forced": true}), "1 d1 2222")
	wantBuilds(t, f.push(t, map[string]any{"created": true, "before": none, "forced": true}), "1 d1 2222")
}

func TestWatchesFollowTheDeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	next := map[string]any{"ref": "refs/heads/next"}
	for range 2 { // writing the same watch twice does no harm
		f.watch(t, workspace, d1, agent, "main", true)
	}
	wantBuilds(t, f.push(t, nil), "1 d1 2222")
	f.watch(t, workspace, d1, agent, "next", true)
	wantBuilds(t, f.push(t, nil))
	wantBuilds(t, f.push(t, next), "1 d1 2222")
	for range 2 {
		f.watch(t, workspace, d1, "", "", false)
	}
	wantBuilds(t, f.push(t, next))
	for _, w := range [][2]string{{"file:///srv/agent", "main"}, {agent, ""}, {agent, "refs/tags/v1"}} {
		f.watch(t, workspace, d1, agent, "main", true)
		f.watch(t, workspace, d1, w[0], w[1], true)
		wantBuilds(t, f.push(t, nil))
	}
}

// TestAnIndexThatLagsBehind: an index of DynamoDB may list a deployment for a moment after the
// deployment was changed.
func TestAnIndexThatLagsBehind(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	w := push.Watch{Workspace: workspace, Deployment: d1, RepoURL: agent, RepoRef: "main", BuildOnPush: true}
	put := w.Write(f.clock.Now()).(table.Put)
	for _, attrs := range []table.Attrs{{"branch": "next"}, {"repository": "github.com/acme/other"}} {
		check.Must(t, f.table.Transact(t.Context(), table.Update{Key: put.Item.Key, Set: attrs}))
		wantBuilds(t, f.push(t, nil))
		check.Must(t, f.table.Transact(t.Context(), put))
	}
	wantBuilds(t, f.push(t, nil), "1 d1 2222")
}

func TestARepositoryThatNobodyWatchesWritesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	f.table.writes, f.table.queries = 0, nil
	wantBuilds(t, f.push(t, named("acme/other", nil)))
	if f.table.writes != 0 || len(f.table.queries) != 1 || f.table.queries[0].Index != table.ByList || !strings.HasPrefix(f.table.queries[0].PK, "W#"+workspace) {
		t.Errorf("got %d writes and queries %v, want one index read in the workspace", f.table.writes, f.table.queries)
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	text := body(nil)
	good := sign(text, appSecret)
	for name, c := range map[string]struct {
		signature string
		good      bool
	}{
		"the secret":           {good, true},
		"the one before":       {sign(text, olderSecret), true},
		"upper case":           {"sha256=" + strings.ToUpper(good[7:]), true},
		"another secret":       {sign(text, "another-secret-of-whom"), false},
		"the empty secret":     {sign(text, ""), false},
		"of another body":      {sign(append(slices.Clone(text), ' '), appSecret), false},
		"cut":                  {good[:len(good)-2], false},
		"only the name":        {"sha256=", false},
		"without the name":     {good[7:], false},
		"sha1":                 {"sha1=" + good[7:], false},
		"no signature":         {"", false},
		"not hex":              {"sha256=" + strings.Repeat("z", 64), false},
		"one letter is other":  {good[:70] + string("01"[btoi(good[70] == '0')]), false},
		"a deployment's":       {sign(text, f.HookSecret(workspace, d1)), false},
		"two, separated by ,":  {good + "," + good, false},
		"surrounded by spaces": {" " + good, false},
	} {
		f.deliveries++
		err := f.App(t.Context(), push.Delivery{Event: "push", ID: name, Signature: c.signature, Body: text})
		if built := len(f.take()); c.good && (err != nil || built != 1) || !c.good && (!fault.Is(err, fault.Unauthorized) || built != 0) {
			t.Errorf("%s: got %v and %d builds", name, err, built)
		}
	}
	f.config.Secrets = nil
	deaf := push.NewReceiver(f.config)
	wantFault(t, deaf.App(t.Context(), push.Delivery{Event: "ping", ID: "x", Signature: sign(text, ""), Body: text}), fault.Unauthorized)
	for _, short := range []string{"", "fifteen letters"} {
		f.secrets = []string{appSecret, short}
		if err := f.App(t.Context(), f.delivery("ping", nil, short)); err == nil || fault.Is(err, fault.Unauthorized) || short != "" && strings.Contains(err.Error(), short) {
			t.Errorf("secret %q: got %v", short, err)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestOtherEventsAndBodies(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, agent, "main", true)
	for _, event := range []string{"ping", "issues", "pull_request", ""} {
		for _, text := range []string{string(body(nil)), `{"zen": "Keep it logically awesome."}`, "", "{"} {
			check.Must(t, f.App(t.Context(), f.delivery(event, []byte(text), appSecret)))
		}
	}
	for _, text := range []string{"", "{", "payload=%7B%7D", `[]`, `{"ref": 1}`, `{"installation": {"id": "x"}}`, `{"installation": {"id": 1e40}}`, "\xff"} {
		wantFault(t, f.App(t.Context(), f.delivery("push", []byte(text), appSecret)), fault.Invalid)
		wantFault(t, f.Deployment(t.Context(), workspace, d1, f.delivery("push", []byte(text), f.HookSecret(workspace, d1))), fault.Invalid)
	}
	for _, deliveryID := range []string{"", strings.Repeat("x", 201)} {
		d := f.delivery("push", body(nil), appSecret)
		d.ID = deliveryID
		wantFault(t, f.App(t.Context(), d), fault.Invalid)
	}
	wantBuilds(t, f.take())
	large := bytes.Repeat([]byte(" "), push.MaxPayload-len(body(nil)))
	check.Must(t, f.App(t.Context(), f.delivery("push", append(large, body(nil)...), appSecret)))
	wantBuilds(t, f.take(), "1 d1 2222")
	wantFault(t, f.App(t.Context(), f.delivery("push", append(large, append(body(nil), ' ')...), appSecret)), fault.TooLarge)
	wantBuilds(t, f.take())
}

func TestInstallationEvents(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	send := func(event, text string) {
		t.Helper()
		check.Must(t, f.App(t.Context(), f.delivery(event, []byte(text), appSecret)))
	}
	bound := func() int {
		t.Helper()
		found, err := f.integrations.Installations(t.Context(), workspace)
		check.Must(t, err)
		return len(found)
	}
	for _, action := range []string{"created", "suspend", "unsuspend", "new_permissions_accepted"} {
		send("installation", `{"action": "`+action+`", "installation": {"id": 77}}`)
	}
	send("installation_repositories", `{"action": "removed", "installation": {"id": 77}}`)
	send("installation_repositories", `{"action": "deleted", "installation": {"id": 77}}`)
	send("installation", `{"action": "deleted", "installation": {"id": 78}}`)
	send("installation", `{"action": "deleted"}`)
	if bound() != 1 {
		t.Fatal("the installation is gone")
	}
	for range 2 {
		send("installation", `{"action": "deleted", "installation": {"id": 77}}`)
		if bound() != 0 {
			t.Error("the installation is still bound")
		}
	}
}

// TestAChangeForgetsTokens: both events may have taken repositories from the installation.
func TestAChangeForgetsTokens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i, err := f.integrations.Installations(t.Context(), workspace)
	check.Must(t, err)
	for _, event := range []string{"installation", "installation_repositories"} {
		if _, err := f.integrations.Repositories(t.Context(), i[0].Ref); err != nil {
			t.Fatal(err)
		}
		before := len(f.github.Asked())
		check.Must(t, f.App(t.Context(), f.delivery(event, []byte(`{"action": "suspend", "installation": {"id": 77}}`), appSecret)))
		if _, err := f.integrations.Repositories(t.Context(), i[0].Ref); err != nil {
			t.Fatal(err)
		}
		if asked := f.github.Asked()[before:]; len(asked) != 2 || !strings.Contains(asked[0], "access_tokens") {
			t.Errorf("%s: GitHub was asked %v, want a new token and the list", event, asked)
		}
	}
}
