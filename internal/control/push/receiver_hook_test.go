package push_test

import (
	"maps"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestTheHookOfADeployment(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	const forge = "https://git.example.com:3000/team/agent"
	f.watch(t, workspace, d1, forge, "main", true)
	f.watch(t, workspace, d2, forge, "main", true)
	secret := f.HookSecret(workspace, d1)
	at := map[string]any{
		"installation": nil, "created": nil, "deleted": nil, "repository.clone_url": forge + ".git",
		"repository.ssh_url": "ssh://git@git.example.com:2222/team/agent.git", "repository.html_url": forge,
	}
	send := func(deployment string, changes map[string]any, secret string) error {
		t.Helper()
		all := maps.Clone(at)
		maps.Copy(all, changes)
		return f.Deployment(t.Context(), workspace, deployment, f.delivery("push", body(all), secret))
	}
	check.Must(t, send(d1, nil, secret))
	wantBuilds(t, f.take(), "1 d1 2222")
	f.watch(t, workspace, d1, "ssh://git@git.example.com:2222/team/agent", "main", true)
	check.Must(t, send(d1, nil, secret))
	wantBuilds(t, f.take(), "1 d1 2222")
	// The repository's host has another name here.
	f.watch(t, workspace, d1, "https://forge.internal/team/agent", "main", true)
	check.Must(t, send(d1, nil, secret))
	wantBuilds(t, f.take(), "1 d1 2222")
	for _, changes := range []map[string]any{
		{"ref": "refs/heads/next"}, {"after": none}, {"ref": "refs/tags/main"}, named("team/bot", nil),
	} {
		check.Must(t, send(d1, changes, secret))
	}
	check.Must(t, f.Deployment(t.Context(), workspace, d1, f.delivery("ping", nil, secret)))
	check.Must(t, send(d3, nil, f.HookSecret(workspace, d3))) // it was deleted since
	wantBuilds(t, f.take())

	d := f.delivery("push", body(at), secret)
	check.Must(t, f.Deployment(t.Context(), workspace, d1, d))
	check.Must(t, f.Deployment(t.Context(), workspace, d1, d))
	wantBuilds(t, f.take(), "1 d1 2222")

	for name, err := range map[string]error{
		"another deployment's secret": send(d2, nil, secret),
		"an unknown deployment":       send(d3, nil, secret),
		"the App's secret":            send(d1, nil, appSecret),
		"another workspace":           f.Deployment(t.Context(), other, d1, f.delivery("push", body(at), secret)),
		"no deployment":               f.Deployment(t.Context(), workspace, "", f.delivery("push", body(at), f.HookSecret(workspace, ""))),
		"no workspace":                f.Deployment(t.Context(), "x#y", d1, f.delivery("push", body(at), f.HookSecret("x#y", d1))),
	} {
		if !fault.Is(err, fault.Unauthorized) || err.Error() != "The signature is not valid." {
			t.Errorf("%s: got %v", name, err)
		}
	}
	wantBuilds(t, f.take())
	if len(secret) != 64 || secret == f.HookSecret(workspace, d2) || secret == f.HookSecret(other, d1) {
		t.Errorf("secrets of %d letters, or shared", len(secret))
	}
	f.assertNoSecrets(t, secret, appSecret, olderSecret)
}

func FuzzApp(f *testing.F) {
	for _, seed := range [][]byte{body(nil), body(map[string]any{"repository": nil}), []byte(`{}`), []byte(`{"installation":{"id":77},"ref":"refs/heads/main"}`), []byte(`null`), nil} {
		for _, event := range []string{"push", "installation", "installation_repositories", "ping"} {
			f.Add(event, seed)
		}
	}
	fx := setUp(f)
	fx.watch(f, workspace, d1, agent, "main", true)
	f.Fuzz(func(t *testing.T, event string, text []byte) {
		if err := fx.App(t.Context(), fx.delivery(event, text, appSecret)); err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("got %v", err)
		}
	})
}
