package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the reference of the command line")

// TestReference compares the reference with the commands from which it is made.
func TestReference(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("# The command line\n\nMade of the commands themselves by `go test ./internal/cmd/slipway -run TestReference -update`.\n")
	reference(&text, newRoot())
	file := filepath.Join("..", "..", "..", "infra", "cli.md")
	if *update {
		check.Must(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	written, err := os.ReadFile(file)
	check.Must(t, err)
	if diff := cmp.Diff(string(written), text.String()); diff != "" {
		t.Errorf("infra/cli.md is not what the commands say; run this test with -update (-written +said):\n%s", diff)
	}
}

// silent are the commands without --json: they run until they are ended, or write a file.
var silent = []string{"slipway serve", "slipway connect", "slipway backup", "slipway restore", "slipway exit-codes"}

// TestEveryCommandSpeaksToPrograms checks that each command that does something has --json.
func TestEveryCommandSpeaksToPrograms(t *testing.T) {
	t.Parallel()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			if below.HasSubCommands() {
				look(below)
			} else if !below.Hidden && below.LocalFlags().Lookup("json") == nil && !slices.Contains(silent, below.CommandPath()) {
				t.Errorf("%s has no --json", below.CommandPath())
			}
		}
	}
	look(newRoot())
}

// reference writes the help of a command and of its subcommands.
func reference(text *strings.Builder, cmd *cobra.Command) {
	if cmd.Runnable() || cmd.IsAdditionalHelpTopicCommand() {
		fmt.Fprintf(text, "\n## %s\n\n%s\n", cmd.CommandPath(), cmd.Short+".")
		if long := strings.TrimSpace(cmd.Long); long != "" {
			fmt.Fprintf(text, "\n```text\n%s\n```\n", long)
		}
		if cmd.Runnable() {
			fmt.Fprintf(text, "\n```text\n%s\n\n%s```\n", cmd.UseLine(), cmd.LocalFlags().FlagUsages())
		}
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden && below.Name() != "help" {
			reference(text, below)
		}
	}
}
