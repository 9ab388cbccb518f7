package oauthstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/tenant/oauthstate"
)

func TestAStateOpensItsRequestAlone(t *testing.T) {
	t.Parallel()
	workspace, request := id.New(time.Now()), id.New(time.Now())
	made, other := oauthstate.New(workspace, request), oauthstate.New(workspace, request)
	back, ok := oauthstate.Parse(made.String())
	if !ok || back != made || back.Workspace != workspace || back.Request != request {
		t.Errorf("%q is read as %+v, %t", made.String(), back, ok)
	}
	if !back.Opens(made.Hash()) || back.Opens(other.Hash()) || back.Opens("") {
		t.Error("it does not open what it was made for, or something else too")
	}
}

func TestParseRefusesOtherTexts(t *testing.T) {
	t.Parallel()
	good := oauthstate.New(id.New(time.Now()), id.New(time.Now())).String()
	parts := strings.Split(good, ".")
	for _, text := range []string{"", ".", "..", parts[0], parts[0] + "." + parts[1], good + ".", "x." + parts[1] + "." + parts[2], parts[0] + ".x." + parts[2]} {
		if s, ok := oauthstate.Parse(text); ok {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}
