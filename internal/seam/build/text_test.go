package build_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestAttackAPasswordInAVariable has passwords with signs that are not usual in them, and a proxy
// without a scheme, which curl and Go take.
func TestAttackAPasswordInAVariable(t *testing.T) {
	t.Parallel()
	for variable, want := range map[string]string{
		"HTTPS_PROXY=http://user:secret@proxy:1":                   "HTTPS_PROXY=http://proxy:1",
		"HTTPS_PROXY=http://us,er:sec,ret@proxy:1":                 "HTTPS_PROXY=http://proxy:1",
		"HTTPS_PROXY=http://user:sec|ret@proxy:1":                  "HTTPS_PROXY=http://proxy:1",
		"HTTPS_PROXY=http://user:sec@ret@proxy:1":                  "HTTPS_PROXY=http://proxy:1",
		"HTTPS_PROXY=http://:secret@proxy:1":                       "HTTPS_PROXY=http://proxy:1",
		"HTTPS_PROXY=user:secret@proxy:1":                          "HTTPS_PROXY=proxy:1",
		"https_proxy=secret@proxy:1":                               "https_proxy=proxy:1",
		"NO_PROXY=localhost,.example":                              "NO_PROXY=localhost,.example",
		"GOPROXY=https://a.example,https://u:secret@b.example|off": "GOPROXY=https://a.example,https://b.example|off",
		"GOPROXY=https://a.example,direct":                         "GOPROXY=https://a.example,direct",
		"GOFLAGS=-ldflags=-X=main.author=a@b.example":              "GOFLAGS=-ldflags=-X=main.author=a@b.example",
		"UV_INDEX=ours=https://a.example/@scope?to=b@c":            "UV_INDEX=ours=https://a.example/@scope?to=b@c",
	} {
		if got := build.WithoutCredentials(variable); got != want {
			t.Errorf("%s: got %s, want %s", variable, got, want)
		}
	}
}
