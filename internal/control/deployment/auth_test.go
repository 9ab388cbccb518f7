package deployment_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestARevisionThatBeginsOrEndsItsOwnAuthenticationGetsNoCanary: until the revision is
// promoted, the agent server would serve it under the rules of another revision.
func TestARevisionThatBeginsOrEndsItsOwnAuthenticationGetsNoCanary(t *testing.T) {
	t.Parallel()
	percent := 10
	for _, c := range []struct {
		active bool
		next   string
		want   bool
	}{{false, "", true}, {true, "./auth.py:auth", true}, {true, "", false}, {false, "./auth.py:auth", false}} {
		d := deployment.Deployment{Active: "active", Auth: c.active}
		d.CanaryPercent = &percent
		if got := d.WantsCanary(revision.Revision{Artifact: build.Artifact{Auth: c.next}}); got != c.want {
			t.Errorf("from %t to %q: %t", c.active, c.next, got)
		}
	}
}

// TestARevisionThatBeginsToEncryptGetsNoCanary: the agent server asks the active revision to
// encrypt.
func TestARevisionThatBeginsToEncryptGetsNoCanary(t *testing.T) {
	t.Parallel()
	percent := 10
	for _, encrypted := range []bool{false, true} {
		d := deployment.Deployment{Active: "active", Encrypted: encrypted}
		d.CanaryPercent = &percent
		if got := d.WantsCanary(revision.Revision{Artifact: build.Artifact{Encryption: "./own.py:e"}}); got != encrypted {
			t.Errorf("from %t: %t", encrypted, got)
		}
	}
}
