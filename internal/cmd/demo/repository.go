package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// branch is the branch of a repository that the demo makes.
const branch = "main"

// configFile is the agent's description at the root of its repository.
const configFile = "framework.json"

// checkAgent returns an error if there is no agent at a path.
func checkAgent(agent string) error {
	_, err := os.Stat(filepath.Join(agent, configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no agent at %s (no %s): run this in a checkout of Slipway, or name a directory with --agent or a repository with --repo",
			agent, configFile)
	}
	if err != nil {
		return fmt.Errorf("find agent: %w", err)
	}
	return nil
}

// makeRepository copies an agent's directory and commits it, as its developer would do. It
// returns the repository's URL. A server that is root clones as a user of the workspace, so every
// user may read the repository, whatever the umask is. The random name keeps out the users who do
// not know the URL: they cannot list the directory above it.
func makeRepository(ctx context.Context, agent, above string) (string, error) {
	dir := filepath.Join(above, strings.ToLower(rand.Text()), "repository")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(agent)); err != nil {
		return "", fmt.Errorf("copy agent: %w", err)
	}
	for name, mode := range map[string]fs.FileMode{above: 0o711, filepath.Dir(dir): 0o711, dir: 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			return "", fmt.Errorf("open repository to the server: %w", err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--shared=0644", "--initial-branch", branch},
		{"add", "--all"},
		{"commit", "--quiet", "--message", "An agent for the demo"},
	} {
		if err := git(ctx, dir, args...); err != nil {
			return "", fmt.Errorf("make repository: %w", err)
		}
	}
	return "file://" + filepath.ToSlash(dir), nil
}

// git runs git on the repository in dir, independent of the user's settings and of a
// repository around the working directory. Git's own variables name another repository if the demo
// is run from a hook.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GIT_") })
	cmd.Env = append(cmd.Env,
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Slipway demo", "GIT_AUTHOR_EMAIL=demo@localhost", "GIT_COMMITTER_NAME=Slipway demo", "GIT_COMMITTER_EMAIL=demo@localhost",
	)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(output)))
	}
	return nil
}
