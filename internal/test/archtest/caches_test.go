package archtest_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// limiters are the types that count with an lru.Cache, each with what happens when it drops a
// value. They are not caches: nobody reads an answer from them.
var limiters = map[string]string{
	"internal/api/agentserver/strangers.Limiter": "a caller counts as a stranger again",
	"internal/api/web.Buckets":                   "a name begins with a full bucket",
	"internal/api/web.Limiter":                   "the requests of a workspace count from zero",
	"internal/tenant/apikey.Store":               "the use of a key is noted again",
	"internal/tenant/audit.Store":                "the refusals of a workspace are noted again",
	"internal/tenant/quota.Shared":               "the requests of a workspace count from zero",
}

// TestCachesAreNamed checks that each type with an lru.Cache, and each variable, is called a cache,
// so that its comment can say how large it is, how stale its values are and what it saves.
func TestCachesAreNamed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	eachNode(t, func(f file, node ast.Node) {
		if f.isTest() {
			return
		}
		var name string
		var held []ast.Node
		switch n := node.(type) {
		case *ast.TypeSpec:
			name, held = n.Name.Name, []ast.Node{n.Type}
		case *ast.ValueSpec:
			name = n.Names[0].Name
			for _, value := range n.Values {
				held = append(held, value)
			}
		}
		for _, inner := range held {
			if !usesLRU(inner) || strings.HasSuffix(name, "Cache") {
				continue
			}
			limiter := path.Dir(f.name) + "." + name
			if used[limiter] = true; limiters[limiter] == "" {
				t.Errorf("%s: a type with an lru.Cache is called a cache, and its comment has its bound, its staleness and a figure", f.at(node))
			}
		}
	})
	for name := range limiters {
		if !used[name] {
			t.Errorf("%s counts with no lru.Cache any more: take it off the list", name)
		}
	}
}

// usesLRU reports whether a type or a value has an lru.Cache.
func usesLRU(node ast.Node) (uses bool) {
	ast.Inspect(node, func(inner ast.Node) bool {
		if expression, ok := inner.(ast.Expr); ok {
			uses = uses || isSelector(expression, "lru", "Cache") || isSelector(expression, "lru", "New")
		}
		return !uses
	})
	return uses
}
