package archtest_test

import (
	"go/ast"
	"testing"
)

// openers are the tests that open a table or load a key file without package fixtures, by folder or
// file, each with its reason.
var openers = map[string]string{
	"internal/seam/secret/keyfile":                       "tests the files of keys",
	"internal/seam/table/sqlite":                         "tests the files of tables, and that what is committed is on the disk",
	"internal/seam/compute/replica/target_trial_test.go": "another process opens the table, which has no test",
	"internal/seam/workflow/local/engine_kill_test.go":   "another process opens the table, which has no test",
	"internal/seam/workflow/local/suspects_test.go":      "another process opens the table, which has no test",
	"internal/tenant/webhook/delivery_attack_test.go":    "another process opens the table, which has no test",
}

// TestFixturesOpenTables checks that tests leave it to package fixtures to open tables and to load
// keys, and to package check to end a test whose preparation fails.
func TestFixturesOpenTables(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		if !f.isTest() {
			return
		}
		switch n := node.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "must" && n.Recv == nil {
				t.Errorf("%s: call check.Must or check.Value", f.at(n))
			}
		case *ast.CallExpr:
			if !isSelector(n.Fun, "sqlite", "Open") && !isSelector(n.Fun, "keyfile", "Load") {
				return
			}
			for opener := range openers {
				if inFolder(f.name, opener) {
					used[opener] = true
					return
				}
			}
			t.Errorf("%s: call fixtures.Table, TableAt, Key or KeyAt", f.at(n))
		}
	})
	for opener := range openers {
		if !used[opener] {
			t.Errorf("%s opens nothing any more: take it off the list", opener)
		}
	}
}
