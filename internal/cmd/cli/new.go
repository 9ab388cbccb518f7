package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// starters are the agents that people begin with, a directory for each language. Their names
// end in .tmpl, so that no tool treats them as a part of this program.
//
//go:embed all:starter
var starters embed.FS

// languages are the directories of starters, and the programs that an agent in each language
// needs on the server.
var languages = map[string]string{"python": "Python 3.11", "javascript": "Node 20", "go": "Go"}

const newLong = `Make a small agent in a new directory, ready to be deployed: in Python or JavaScript with the
framework, or in Go with only the standard library. The agent in Go shows what an agent in any
language has to do.`

func newNew() *cobra.Command {
	var language string
	cmd := &cobra.Command{
		Use: "new DIR", Short: "Make a small agent", Long: newLong, Args: exit.Arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if languages[language] == "" {
				return exit.Usagef("--language must be python, javascript or go, not %q; the agent in Go shows what one in any language has to do", language)
			}
			if err := writeStarter(args[0], language); err != nil {
				return err
			}
			return output.Done(cmd, fmt.Sprintf("%s has an agent, which needs %s. Next: slipway deploy %s", args[0], languages[language], shellWord(args[0])),
				map[string]any{"directory": args[0], "language": language})
		},
	}
	cmd.Flags().StringVar(&language, "language", "python", "python, javascript or go")
	OfferValues(cmd, "language", "python", "javascript", "go")
	return output.WithJSON(cmd)
}

// writeStarter writes a starter into a directory that is new or empty.
func writeStarter(dir, language string) error {
	existing, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make an agent: %w", err)
	}
	if slices.ContainsFunc(existing, func(entry fs.DirEntry) bool { return entry.Name() != ".git" }) {
		return exit.Usagef("%s is not empty; name a new directory", dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make an agent: %w", err)
	}
	from := path.Join("starter", language)
	entries, err := starters.ReadDir(from)
	if err != nil {
		return fmt.Errorf("make an agent: %w", err)
	}
	for _, entry := range entries {
		text, err := starters.ReadFile(path.Join(from, entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strings.TrimSuffix(entry.Name(), ".tmpl")), text, 0o666)
		}
		if err != nil {
			return fmt.Errorf("make an agent: %w", err)
		}
	}
	return nil
}

// shellWord returns a word as a person types it in a shell.
func shellWord(word string) string {
	if !strings.ContainsAny(word, " \t\n'\"\\$`&|;<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
