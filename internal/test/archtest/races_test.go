package archtest_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// handlesLostRaces are the packages that may handle a failed condition themselves, each with
// its reason. All other packages use record.Decide, record.Commit and record.Try. The list
// only shrinks.
var handlesLostRaces = map[string]string{
	"internal/record/record":        "the one place that decides again",
	"internal/record/cipher":        "decrypts the item of a failed condition, and passes the failure on",
	"internal/seam/table":           "defines it",
	"internal/seam/build/codebuild": "a seam cannot import record: notes of builds, one try each",
	"internal/seam/secret/kms":      "a seam cannot import record: the first of several processes makes a data key",
	"internal/seam/workflow/local":  "a seam cannot import record: a lost race ends the work, or is tried again with pauses",
}

// TestOnlyRecordHandlesLostRaces prevents a second loop.
func TestOnlyRecordHandlesLostRaces(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		selector, ok := node.(*ast.SelectorExpr)
		if f.isTest() || !ok || !isSelector(selector, "table", "ConditionFailed") {
			return
		}
		for dir := range handlesLostRaces {
			if strings.HasPrefix(f.name, dir+"/") {
				used[dir] = true
				return
			}
		}
		t.Errorf("%s: a failed condition is handled by record.Decide, record.Commit or record.Try", f.at(node))
	})
	for dir := range handlesLostRaces {
		if !used[dir] {
			t.Errorf("%s handles no failed condition any more: take it off the list", dir)
		}
	}
}

// mayRepeat are the functions that ask in a loop whether a race was lost, each with its reason.
var mayRepeat = map[string]string{
	"internal/record/record.DecideValue":       "the loop",
	"internal/control/deployment.ForgetBuilds": "goes over builds, and stops at the first lost race",
	"internal/seam/workflow/local.stop":        "a seam cannot import record: a bounded number of tries with pauses",
	"internal/seam/workflow/local.write":       "tries again while the table fails, and stops at the first lost race",
}

// TestThereIsOneLoopOverLostRaces searches for loops that check for record.ErrLost or for a
// failed condition.
func TestThereIsOneLoopOverLostRaces(t *testing.T) {
	t.Parallel()
	repeats := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		function, ok := node.(*ast.FuncDecl)
		if !ok || f.isTest() || function.Body == nil || folderOf(path.Dir(f.name)) == "test" {
			return
		}
		name := path.Dir(f.name) + "." + function.Name.Name
		eachLoop(function.Body, func(loop ast.Node) {
			ast.Inspect(loop, func(inner ast.Node) bool {
				if !asksForLostRace(inner) {
					return true
				}
				repeats[name] = true
				if mayRepeat[name] == "" {
					t.Errorf("%s: a second loop over lost races: use record.Decide", f.at(inner))
				}
				return true
			})
		})
	})
	for name := range mayRepeat {
		if !repeats[name] {
			t.Errorf("%s asks for no lost race in a loop any more: take it off the list", name)
		}
	}
}

// mayTryEach are the functions that call record.Try in a loop, each with its reason. A loop that
// tries the same write until it is applied is a loop over lost races.
var mayTryEach = map[string]string{
	"internal/agent/run.eraseEvents": "tries each of several items once",
}

// TestNoLoopTriesAWriteAgain searches for loops around record.Try.
func TestNoLoopTriesAWriteAgain(t *testing.T) {
	t.Parallel()
	tries := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		function, ok := node.(*ast.FuncDecl)
		if !ok || f.isTest() || function.Body == nil {
			return
		}
		name := path.Dir(f.name) + "." + function.Name.Name
		eachLoop(function.Body, func(loop ast.Node) {
			ast.Inspect(loop, func(inner ast.Node) bool {
				if call, ok := inner.(*ast.CallExpr); ok && isSelector(call.Fun, "record", "Try") {
					if tries[name] = true; mayTryEach[name] == "" {
						t.Errorf("%s: a loop around record.Try: use record.Decide, or give a reason", f.at(inner))
					}
				}
				return true
			})
		})
	})
	for name := range mayTryEach {
		if !tries[name] {
			t.Errorf("%s calls record.Try in no loop any more: take it off the list", name)
		}
	}
}

// eachLoop calls visit with each loop in a body.
func eachLoop(body ast.Node, visit func(ast.Node)) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			visit(node)
		}
		return true
	})
}

// asksForLostRace reports whether a node is errors.Is(err, record.ErrLost) or checks for a
// table.ConditionFailed.
func asksForLostRace(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.CallExpr:
		if !isSelector(node.Fun, "errors", "Is") {
			return false
		}
		own, isOwn := node.Args[1].(*ast.Ident) // within package record
		return isSelector(node.Args[1], "record", "ErrLost") || (isOwn && own.Name == "ErrLost")
	case *ast.IndexExpr:
		star, ok := node.Index.(*ast.StarExpr)
		return ok && isSelector(node.X, "errors", "AsType") && isSelector(star.X, "table", "ConditionFailed")
	case *ast.ValueSpec: // for errors.As
		star, ok := node.Type.(*ast.StarExpr)
		return ok && isSelector(star.X, "table", "ConditionFailed")
	}
	return false
}
