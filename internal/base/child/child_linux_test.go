package child_test

import "testing"

func TestChildDiesWithAKilledServer(t *testing.T) {
	t.Parallel()
	addr, accept := switchboard(t)
	kill := startServer(t, t.TempDir(), addr, `exec "$PROGRAM"`)
	program := accept()
	kill()
	program.wantDeath(t)
}

func TestOpenEndsWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	addr, accept := switchboard(t)
	kill := startServer(t, dir, addr, `setsid "$PROGRAM" >/dev/null 2>&1 & wait`)
	program := accept()
	kill()
	open(t, dir)
	program.wantDeath(t)
}
