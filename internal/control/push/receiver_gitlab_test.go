package push_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/test/check"
)

const lab = "https://gitlab.example.com/team/tools/agent"

// gitlabBody is the payload of GitLab's event for a push to main of team/tools/agent, with
// changes of its members.
func gitlabBody(changes map[string]any) []byte {
	p := map[string]any{
		"object_kind": "push", "event_name": "push", "ref": "refs/heads/main", "before": before, "after": after, "checkout_sha": after, "project_id": 15,
		"project": map[string]any{
			"id": 15, "web_url": lab, "git_http_url": lab + ".git", "git_ssh_url": "git@gitlab.example.com:team/tools/agent.git", "path_with_namespace": "team/tools/agent",
		},
		"repository": map[string]any{"name": "agent", "url": "git@gitlab.example.com:team/tools/agent.git", "homepage": lab, "visibility_level": 0},
		"commits":    []any{map[string]any{"id": after}}, "total_commits_count": 1,
	}
	maps.Copy(p, changes)
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return text
}

// fromGitLab is a delivery with a new id.
func (f *fixture) fromGitLab(event string, body []byte, token string) push.Delivery {
	f.deliveries++
	return push.Delivery{Event: event, ID: fmt.Sprintf("delivery-%d", f.deliveries), Token: token, Body: body}
}

func TestGitLabTellsOfPushes(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	secret := f.HookSecret(workspace, d1)
	send := func(d push.Delivery) error {
		t.Helper()
		if err := f.Expects(t.Context(), workspace, d1, d); err != nil {
			return err
		}
		return f.Deployment(t.Context(), workspace, d1, d)
	}
	for _, url := range []string{lab, lab + ".git", "git@gitlab.example.com:team/tools/agent.git"} {
		f.watch(t, workspace, d1, url, "main", true)
		d := f.fromGitLab("Push Hook", gitlabBody(nil), secret)
		for range 2 { // the second time it is resent
			check.Must(t, send(d))
		}
		wantBuilds(t, f.take(), "1 d1 2222")
	}
	check.Must(t, send(f.fromGitLab("Push Hook", gitlabBody(map[string]any{"before": none}), secret)))
	wantBuilds(t, f.take(), "1 d1 2222") // the push has created the branch
	for name, changes := range map[string]map[string]any{
		"another branch":      {"ref": "refs/heads/next"},
		"a branch is deleted": {"after": none, "checkout_sha": nil},
		"a tag":               {"ref": "refs/tags/main"},
		"another project":     {"project": map[string]any{"git_http_url": "https://gitlab.example.com/team/other.git"}},
		"no project":          {"project": nil},
	} {
		if err := send(f.fromGitLab("Push Hook", gitlabBody(changes), secret)); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if got := f.take(); len(got) != 0 {
			t.Errorf("%s: built %v", name, got)
		}
	}
	for _, event := range []string{"Tag Push Hook", "Merge Request Hook", "System Hook", "push", ""} {
		check.Must(t, send(f.fromGitLab(event, gitlabBody(nil), secret)))
	}
	wantBuilds(t, f.take())
	f.watch(t, workspace, d1, lab, "main", false)
	check.Must(t, send(f.fromGitLab("Push Hook", gitlabBody(nil), secret)))
	wantBuilds(t, f.take())
}

func TestGitLabsTokenIsChecked(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.watch(t, workspace, d1, lab, "main", true)
	secret := f.HookSecret(workspace, d1)
	text := gitlabBody(nil)
	for name, token := range map[string]string{
		"another deployment's": f.HookSecret(workspace, d2), "the App's": appSecret, "cut": secret[:63], "longer": secret + "0", "upper case": strings.ToUpper(secret),
		"a signature": sign(text, secret), "none": "",
	} {
		d := f.fromGitLab("Push Hook", text, token)
		for _, err := range []error{f.Expects(t.Context(), workspace, d1, push.Delivery{Event: d.Event, ID: d.ID, Token: token}), f.Deployment(t.Context(), workspace, d1, d)} {
			if !fault.Is(err, fault.Unauthorized) || err.Error() != "The signature is not valid." {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	// A good signature does not make a bad token good, and the App has no tokens.
	signedToo := f.delivery("push", text, secret)
	signedToo.Token = "another"
	wantFault(t, f.Deployment(t.Context(), workspace, d1, signedToo), fault.Unauthorized)
	wantFault(t, f.App(t.Context(), f.fromGitLab("push", text, appSecret)), fault.Unauthorized)
	wantFault(t, f.ExpectsApp(t.Context(), f.fromGitLab("push", text, appSecret)), fault.Unauthorized)
	for _, malformed := range []string{"", "{", "[]", `{"project": 1}`} {
		wantFault(t, f.Deployment(t.Context(), workspace, d1, f.fromGitLab("Push Hook", []byte(malformed), secret)), fault.Invalid)
	}
	for _, deliveryID := range []string{"", strings.Repeat("x", 201)} {
		d := f.fromGitLab("Push Hook", text, secret)
		d.ID = deliveryID
		wantFault(t, f.Deployment(t.Context(), workspace, d1, d), fault.Invalid)
	}
	wantBuilds(t, f.take())
	f.assertNoSecrets(t, secret)
}
