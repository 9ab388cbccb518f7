//go:build agents

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAgentsIndex deploys a repository that embeds the items of the store, and then a revision
// of it with another number of dimensions.
func TestAgentsIndex(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) { s.indexes(t, language) })
	}
}

func (s *server) indexes(t *testing.T, language string) {
	repo := newRepository(t)
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "index", language))))
	repo.commit(t)
	d := s.deployExample(t, "index-"+language, repo)
	var state struct{ Found []any }
	s.call(t, http.StatusOK, "POST", d.url+"/runs/wait", map[string]any{"assistant_id": "agent", "input": map[string]any{"question": "does a dog bark like fish", "found": []any{}}}, &state)
	// The framework for JavaScript passes no index of a put on, so its graph names none.
	found := map[string]string{"python": "[[note true] [1 true] [2 true] [0 false] [hidden false] note ", "node": "[[1 true] [2 true] [0 false] 1 "}[language]
	if got := fmt.Sprint(state.Found); !strings.HasPrefix(got, found) || !strings.Contains(got, "embedding has failed: ValueError") || strings.Contains(got, "cannot be embedded") {
		t.Errorf("the graph has found %s, want %s", got, found)
	}
	type item struct {
		Key   string
		Score *float64
	}
	search := func() (keys []string, scores int) {
		t.Helper()
		var answer struct{ Items []item }
		asked := map[string]any{"namespace_prefix": []string{"facts"}, "query": "cat", "limit": 2}
		s.call(t, http.StatusOK, "POST", d.url+"/store/items/search", asked, &answer)
		for _, item := range answer.Items {
			keys = append(keys, item.Key)
			if item.Score != nil {
				scores++
			}
		}
		return keys, scores
	}
	put := func(text string, status int) {
		t.Helper()
		s.call(t, status, "PUT", d.url+"/store/items", map[string]any{"namespace": []string{"facts", "bob"}, "key": "b", "value": map[string]any{"text": text}}, nil)
	}
	if keys, scores := search(); keys[0] != "0" || scores != 2 {
		t.Errorf("found %v, %d of them ranked", keys, scores)
	}
	put("cat", http.StatusNoContent)
	put("unreadable", http.StatusServiceUnavailable)
	if keys, _ := search(); keys[0] != "b" {
		t.Errorf("found %v", keys)
	}
	repo.change(t, map[string]string{"python": "embed.py", "node": "embed.ts"}[language], "* 256", "* 300")
	repo.change(t, "framework.json", "256", "300")
	d.awaitDeployed(t, d.patch(t, "main"))
	if _, scores := search(); scores != 0 {
		t.Errorf("%d items have a score for vectors of another revision", scores)
	}
	put("cat", http.StatusNoContent)
	if keys, scores := search(); keys[0] != "b" || scores != 1 {
		t.Errorf("after an item was put again, found %v, %d of them ranked", keys, scores)
	}
	d.remove(t)
}
