package archtest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestFunctionsStaySmall checks that functions link nothing that only one machine has, and no
// template engine: it finds methods by their names, and a linker that sees a template engine keeps
// every method of every SDK in the program (7 MB of methods, when it was tried).
func TestFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-tags", "lambda.norpc", "./functions/...")
	cmd.Dir, cmd.Stderr = top, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	for _, engine := range []string{"text/template", "html/template"} {
		if slices.Contains(linked, engine) {
			t.Errorf("a function links %s", engine)
		}
	}
	for _, folder := range []string{"api/console", "api/signin", "cmd/cli"} {
		if slices.Contains(linked, module+"internal/"+folder) {
			t.Errorf("a function links %s, which only one machine has", folder)
		}
	}
}

// TestWorkersWaitForTheTable: a function that answers requests soon gives up on a busy table,
// but a function that a workflow or a timer calls does not.
func TestWorkersWaitForTheTable(t *testing.T) {
	t.Parallel()
	workers := 0
	for _, f := range files(t) {
		if !strings.HasPrefix(f.name, "functions/") || !strings.HasSuffix(f.name, "/main.go") {
			continue
		}
		works := strings.Contains(f.text, "lambdahost.Task(") || strings.Contains(f.text, "lambdahost.Schedule(")
		if patient := strings.Contains(f.text, "s.Patient = true"); works != patient {
			t.Errorf("%s: patient: %t, want %t", f.name, patient, works)
		}
		if works {
			workers++
		}
	}
	if workers != 4 {
		t.Errorf("got %d workers, want 4", workers)
	}
}
