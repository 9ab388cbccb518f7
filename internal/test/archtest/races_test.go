package archtest_test

import (
	"go/ast"
	"strings"
	"testing"
)

// handlesLostRaces are the packages that may look at a failed condition themselves, each with its
// reason. All others use record.Decide, record.Commit and record.Try. The list only shrinks.
var handlesLostRaces = map[string]string{
	"internal/record/record":        "the one place that decides again",
	"internal/seam/table":           "defines it",
	"internal/seam/build/codebuild": "a seam cannot import record: notes of builds, one try each",
	"internal/seam/secret/kms":      "a seam cannot import record: the first of several processes makes a data key",
	"internal/seam/workflow/local":  "a seam cannot import record: one try each, a lost race ends the work",
}

// TestOnlyRecordHandlesLostRaces keeps a second loop from being written.
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
	"DecideValue":  "the loop",
	"putNew":       "waits for the end of a deletion of a thread, by a watch and with a time limit",
	"ForgetBuilds": "goes over builds, and stops at the first lost race",
}

// TestThereIsOneLoopOverLostRaces looks for loops that ask for record.ErrLost.
func TestThereIsOneLoopOverLostRaces(t *testing.T) {
	t.Parallel()
	eachNode(t, func(f file, node ast.Node) {
		function, ok := node.(*ast.FuncDecl)
		if !ok || f.isTest() || function.Body == nil || mayRepeat[function.Name.Name] != "" {
			return
		}
		ast.Inspect(function.Body, func(node ast.Node) bool {
			switch node.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				ast.Inspect(node, func(inner ast.Node) bool {
					call, ok := inner.(*ast.CallExpr)
					if ok && isSelector(call.Fun, "errors", "Is") && isSelector(call.Args[1], "record", "ErrLost") {
						t.Errorf("%s: a second loop over lost races: use record.Decide", f.at(inner))
					}
					return true
				})
			}
			return true
		})
	})
}
