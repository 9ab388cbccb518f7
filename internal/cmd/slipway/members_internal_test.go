package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestRolesAreOffered checks that a shell offers the roles to each command that gives a role.
func TestRolesAreOffered(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"keys create", "members add", "members set-role", "trust add"} {
		root := newRoot()
		var out strings.Builder
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append(append([]string{cobra.ShellCompNoDescRequestCmd}, strings.Fields(command)...), "--role", ""))
		check.Must(t, root.ExecuteContext(t.Context()))
		if got, _, _ := strings.Cut(out.String(), "Completion ended"); got != "admin\neditor\nviewer\n:4\n" {
			t.Errorf("%s: got %q", command, got)
		}
	}
}
