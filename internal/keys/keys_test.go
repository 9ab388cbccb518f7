package keys_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/workflow"
)

var due = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// all has the key that each function makes. The texts are what is stored: another text loses what was stored under this one.
var all = map[string]struct {
	got  table.Key
	want table.Key
}{
	"Workspace":             {keys.Workspace("w"), table.Key{PK: "W#w", SK: "WORKSPACE"}},
	"APIKey":                {keys.APIKey("c0ffee"), table.Key{PK: "KEY#c0ffee", SK: "KEY"}},
	"Deployment":            {keys.Deployment("w", "d"), table.Key{PK: "W#w#D#d", SK: "DEPLOYMENT"}},
	"Revision":              {keys.Revision("w", "d", "r"), table.Key{PK: "W#w#D#d", SK: "REV#r"}},
	"DeploymentName":        {keys.DeploymentName("w", "n"), table.Key{PK: "W#w#DEPLOYMENT-NAME#n", SK: "NAME"}},
	"TracingProject":        {keys.TracingProject("w", "n"), table.Key{PK: "W#w#TRACING-PROJECT#n", SK: "PROJECT"}},
	"DeploymentListEntry":   {keys.DeploymentListEntry("w", "d"), table.Key{PK: "W#w#DEPLOYMENTS", SK: "d"}},
	"ReleaseEntry":          {keys.ReleaseEntry("r"), table.Key{PK: "RELEASES", SK: "r"}},
	"RolloutEntry":          {keys.RolloutEntry("d", due), table.Key{PK: "ROLLOUTS", SK: "2026-03-01T12:00:00.000000Z#d"}},
	"Thread":                {keys.Thread("w", "d", "t"), table.Key{PK: "W#w#D#d#T#t", SK: "THREAD"}},
	"Run":                   {keys.Run("w", "d", "t", "r"), table.Key{PK: "W#w#D#d#T#t", SK: "RUN#r"}},
	"Event":                 {keys.Event("w", "d", "t", 7), table.Key{PK: "W#w#D#d#T#t", SK: "EV#0000000000000007"}},
	"Checkpoint":            {keys.Checkpoint("w", "d", "t", 7), table.Key{PK: "W#w#D#d#T#t", SK: "CP#000000000007"}},
	"ThreadListEntry":       {keys.ThreadListEntry("w", "d", "t"), table.Key{PK: "W#w#D#d#THREADS", SK: "t"}},
	"Lease":                 {keys.Lease("r", due), table.Key{PK: "LEASES#05", SK: "2026-03-01T12:00:00.000000Z#r"}},
	"Execution":             {keys.Execution(string(workflow.Run), "x"), table.Key{PK: "EXECUTIONS#run", SK: "x"}},
	"RunningExecutionEntry": {keys.RunningExecutionEntry(string(workflow.Run), "x"), table.Key{PK: "RUNNING-EXECUTIONS", SK: "run#x"}},
}

func TestKeysAreWrittenAsTheyAreStored(t *testing.T) {
	t.Parallel()
	for name, c := range all {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}

// TestEveryKeyFunctionIsTested reads the package's own source.
func TestEveryKeyFunctionIsTested(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var made []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Name.IsExported() && returnsKey(f) {
				made = append(made, f.Name.Name)
			}
		}
	}
	slices.Sort(made)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), made); diff != "" {
		t.Errorf("key functions (-tested +there):\n%s", diff)
	}
}

func returnsKey(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	result, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && result.Sel.Name == "Key"
}

// TestNoTwoFunctionsMakeOneKey gives all of them the same ids, and names that look like a part of a key.
func TestNoTwoFunctionsMakeOneKey(t *testing.T) {
	t.Parallel()
	made := map[table.Key]string{}
	for _, x := range []string{"x", "D", "T", "0197a000-0000-7000-8000-000000000001", "DEPLOYMENT", "NAME", "THREADS"} {
		for name, key := range map[string]table.Key{
			"Workspace": keys.Workspace(x), "APIKey": keys.APIKey(x), "Deployment": keys.Deployment(x, x), "Revision": keys.Revision(x, x, x),
			"DeploymentName": keys.DeploymentName(x, x), "TracingProject": keys.TracingProject(x, x),
			"DeploymentListEntry": keys.DeploymentListEntry(x, x), "ReleaseEntry": keys.ReleaseEntry(x), "RolloutEntry": keys.RolloutEntry(x, due),
			"Thread": keys.Thread(x, x, x), "Run": keys.Run(x, x, x, x), "Event": keys.Event(x, x, x, 1), "Checkpoint": keys.Checkpoint(x, x, x, 1),
			"ThreadListEntry": keys.ThreadListEntry(x, x, x), "Lease": keys.Lease(x, due), "Execution": keys.Execution(x, x),
			"RunningExecutionEntry": keys.RunningExecutionEntry(x, x),
		} {
			name += " of " + x
			if other, taken := made[key]; taken {
				t.Errorf("%s and %s are both %v", name, other, key)
			}
			made[key] = name
		}
	}
}

func TestIdsAreReadBackFromKeys(t *testing.T) {
	t.Parallel()
	const w, d, r = "0197a000-0000-7000-8000-000000000001", "0197a000-0000-7000-8000-000000000002", "0197a000-0000-7000-8000-000000000003"
	if got := keys.DeploymentID(keys.Deployment(w, d)); got != d {
		t.Errorf("DeploymentID: got %s", got)
	}
	if got := keys.RevisionID(keys.Revision(w, d, r)); got != r {
		t.Errorf("RevisionID: got %s", got)
	}
	if got := keys.RunID(keys.Run(w, d, "t", r)); got != r {
		t.Errorf("RunID: got %s", got)
	}
	revision, err := keys.ParseRevision(keys.Revision(w, d, r))
	if want := (keys.RevisionParts{Workspace: w, Deployment: d, Revision: r}); err != nil || revision != want {
		t.Errorf("ParseRevision: got %v (%v)", revision, err)
	}
	deployment, err := keys.ParseRevision(keys.Deployment(w, d))
	if want := (keys.RevisionParts{Workspace: w, Deployment: d}); err != nil || deployment != want {
		t.Errorf("ParseRevision of a deployment: got %v (%v)", deployment, err)
	}
	run, err := keys.ParseRun(keys.Run(w, d, "t", r))
	if want := (keys.RunParts{Workspace: w, Deployment: d, Thread: "t", Run: r}); err != nil || run != want {
		t.Errorf("ParseRun: got %v (%v)", run, err)
	}
	for _, want := range []int64{0, 7, 999_999_999_999} {
		if got, err := keys.CheckpointNumber(keys.Checkpoint(w, d, "t", want)); err != nil || got != want {
			t.Errorf("CheckpointNumber: got %d (%v), want %d", got, err, want)
		}
	}
}

// TestParsersRefuseOtherKeys gives each parser the keys of all others.
func TestParsersRefuseOtherKeys(t *testing.T) {
	t.Parallel()
	for name, c := range all {
		if parts, err := keys.ParseRevision(c.got); (err == nil) != (name == "Revision" || name == "Deployment") {
			t.Errorf("ParseRevision of %s: got %v (%v)", name, parts, err)
		}
		if parts, err := keys.ParseRun(c.got); (err == nil) != (name == "Run") {
			t.Errorf("ParseRun of %s: got %v (%v)", name, parts, err)
		}
		if number, err := keys.CheckpointNumber(c.got); (err == nil) != (name == "Checkpoint") {
			t.Errorf("CheckpointNumber of %s: got %v (%v)", name, number, err)
		}
	}
}

// TestEveryPartitionBeginsWithItsWorkspace checks what keeps tenants apart; the exceptions are those of the package's documentation.
func TestEveryPartitionBeginsWithItsWorkspace(t *testing.T) {
	t.Parallel()
	without := []string{"APIKey", "Execution", "Lease", "ReleaseEntry", "RolloutEntry", "RunningExecutionEntry"}
	for name, c := range all {
		inWorkspace := c.got.PK == "W#w" || strings.HasPrefix(c.got.PK, "W#w#")
		if inWorkspace == slices.Contains(without, name) {
			t.Errorf("%s is %v", name, c.got)
		}
	}
}

// TestOnlyThisPackageWritesKeys looks through the source for another place that puts together a workspace's partition.
func TestOnlyThisPackageWritesKeys(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Dir(path) == filepath.Join("..", "keys") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, `"W#`) {
				t.Errorf("%s holds %s", path, text.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
