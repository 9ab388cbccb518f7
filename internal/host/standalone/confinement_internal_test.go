package standalone

import (
	"strings"
	"testing"
)

// TestAttackWhereNothingConfines has agents of a second workspace on a machine without the means to
// keep them apart.
func TestAttackWhereNothingConfines(t *testing.T) {
	t.Parallel()
	if why := refusal(1); why != "" {
		t.Errorf("agents of the only workspace are refused: %s", why)
	}
	if why := refusal(2); !strings.Contains(why, "--trust-agents") {
		t.Errorf("agents of two workspaces are refused with %q", why)
	}
}

// TestTheServerSaysWhichPasswordsItKeeps from the commands of tenants.
func TestTheServerSaysWhichPasswordsItKeeps(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://company:password@proxy.example:3128")
	gaps := strings.Join(Gaps(struct{ First, Last int }{}), "\n")
	if !strings.Contains(gaps, "The credentials in HTTPS_PROXY are kept") || strings.Contains(gaps, "company:password") {
		t.Errorf("it says:\n%s", gaps)
	}
}
