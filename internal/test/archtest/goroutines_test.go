package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// unguarded are the goroutines that are started without package guard, by file, with their
// number and the reason: tenants' work does not run in them, or is guarded further in. Remove
// a line when its goroutine is removed.
var unguarded = map[string]struct {
	count  int
	reason string
}{
	"internal/api/web/stream.go":                {1, "the reading is guarded, so that the stream ends with the error"},
	"internal/base/child/child.go":              {1, "each write of output is guarded, so that a full pipe does not stop the child"},
	"internal/base/child/system_linux.go":       {1, "the thread that starts processes: the kernel ends them all with it"},
	"internal/base/outbound/proxy.go":           {1, "net/http, which recovers by itself"},
	"internal/control/push/deliver.go":          {1, "each delivery is guarded, so that its error is in its place"},
	"internal/host/lambdahost/streaming.go":     {1, "the handler is recovered where it is served"},
	"internal/host/standalone/server.go":        {3, "the timers, whose every pass is guarded, and net/http, which recovers by itself"},
	"internal/host/standalone/stop.go":          {2, "waits for a group, and net/http, which recovers by itself"},
	"internal/jobs/reconcile/reconcile.go":      {1, "each rescue is guarded, so that the pass has its error"},
	"internal/jobs/rollout/rollout.go":          {1, "waits for two channels"},
	"internal/jobs/runner/ahead.go":             {1, "each read is guarded, so that the attempt has its error"},
	"internal/seam/build/docker/images.go":      {1, "the packing is guarded, so that the build has its error"},
	"internal/seam/build/local/limits.go":       {1, "each look is guarded, so that the build ends with its error"},
	"internal/seam/compute/replica/relapse.go":  {1, "the probing is guarded, so that the agent is started again"},
	"internal/seam/compute/replica/restart.go":  {1, "the restart is guarded, so that it ends with a failure"},
	"internal/seam/table/due.go":                {1, "each look is guarded, so that the pass has its error"},
	"internal/seam/table/sqlite/sqlite.go":      {1, "the one writer: nothing can be stored without it, so the process had better end"},
	"internal/seam/workflow/local/invoke.go":    {1, "the function is recovered there, as its panic is an error that a machine may catch"},
	"internal/seam/workflow/local/lifecycle.go": {1, "Close waits for a group"},
}

// TestTenantsWorkIsGuarded checks that each goroutine of the server is started with a guarded
// function, so that its panic does not end the process. Goroutines that only tests and other
// programs start do not belong to the server.
func TestTenantsWorkIsGuarded(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	eachNode(t, func(f file, node ast.Node) {
		if f.isTest() || !inServer(f.name) {
			return
		}
		switch n := node.(type) {
		case *ast.GoStmt:
			if !isGuarded(n.Call.Fun) {
				found[f.name]++
			}
		case *ast.CallExpr:
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Go" && len(n.Args) == 1 && !isGuarded(n.Args[0]) {
				found[f.name]++
			}
		}
	})
	for name, count := range found {
		if allowed := unguarded[name]; count > allowed.count {
			t.Errorf("%s: %d goroutines are started without guard.Func or guard.ErrFunc; %d are allowed", name, count, allowed.count)
		}
	}
	for name, allowed := range unguarded {
		if found[name] < allowed.count {
			t.Errorf("%s: %d goroutines are started without a guard, and unguarded allows %d: lower the number", name, found[name], allowed.count)
		}
	}
}

// inServer reports whether a file is part of the server, on one machine or on AWS.
func inServer(name string) bool {
	for _, dir := range []string{"internal/cmd/", "internal/test/"} {
		if strings.HasPrefix(name, dir) {
			return false
		}
	}
	dir := name[:strings.LastIndex(name, "/")+1]
	return strings.HasPrefix(name, "internal/") && !strings.HasSuffix(dir, "test/")
}

// isGuarded reports whether an expression is a function that package guard returned, or the
// function of a release, which does the same.
func isGuarded(expression ast.Expr) bool {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return false
	}
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "guarded" {
		return true
	}
	return isSelector(call.Fun, "guard", "Func") || isSelector(call.Fun, "guard", "ErrFunc")
}
