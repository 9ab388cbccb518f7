package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"gopkg.in/yaml.v3"
)

// pinned matches an action that is named by its commit.
var pinned = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)

// TestTheExampleOfAPipelineTriesAStack: before the stacks that people use, the pipeline makes a
// stack and deletes it, also if the job is cancelled. Actions are named by their commits.
func TestTheExampleOfAPipelineTriesAStack(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(top, "infra", "examples", "ci", "stack.yml"))
	check.Must(t, err)
	var workflow struct {
		Jobs map[string]struct {
			Needs any
			If    string
			Steps []struct{ Uses, If, Run string }
		}
	}
	check.Must(t, yaml.Unmarshal(text, &workflow))
	tries, deletes := false, false
	for name, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Uses != "" && !pinned.MatchString(step.Uses) {
				t.Errorf("%s uses %s", name, step.Uses)
			}
			if name == "trial" && strings.Contains(step.Run, "infra/rehearsal/account.py") {
				tries = tries || step.If == ""
				deletes = deletes || step.If == "cancelled()" && strings.HasSuffix(step.Run, " --delete")
			}
		}
	}
	deploy := workflow.Jobs["deploy"]
	needs, _ := deploy.Needs.([]any)
	if !tries || !deletes || !slices.Contains(needs, any("trial")) || !strings.Contains(deploy.If, "!failure()") {
		t.Errorf("the trial tries a stack: %t, and deletes it: %t; deploy needs %v if %s", tries, deletes, needs, deploy.If)
	}
}
