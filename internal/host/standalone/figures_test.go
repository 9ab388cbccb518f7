package standalone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestFiguresAreTheSameInEachFormat compares them after an agent server has answered one
// request.
func TestFiguresAreTheSameInEachFormat(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c := clientOf(credentials)
	created := c.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "weather", "source": "internal_source", "secrets": []any{}, "source_config": map[string]any{}, "source_revision_config": map[string]any{},
	})
	server := "/d/" + created["id"].(string)
	c.call(t, http.StatusOK, "GET", server+"/info", nil)
	figures := c.call(t, http.StatusOK, "GET", server+"/metrics?format=json", nil)
	status, text := ask(t, "GET", c.base+server+"/metrics?format=prometheus", c.headers, nil)
	if status != http.StatusOK {
		t.Fatalf("got %d %s", status, text)
	}
	for name, sample := range map[string]string{
		"slipway_http_requests_total":           `slipway_http_requests_total{code="200",method="get",route="GET %s"} %v`,
		"slipway_http_request_duration_seconds": `slipway_http_request_duration_seconds_count{route="GET %s"} %v`,
	} {
		list, _ := figures[name].([]any)
		if len(list) != 1 {
			t.Fatalf("there are %d figures of the name %s: %v", len(list), name, figures)
		}
		one := list[0].(map[string]any)
		route, value := one["labels"].(map[string]any)["route"].(string), one["value"]
		if value == nil {
			value = one["count"]
		}
		want := fmt.Sprintf(sample, strings.TrimPrefix(route, "GET "), value)
		if !strings.HasSuffix(route, "/info") || value != 1.0 || !strings.Contains(string(text), want+"\n") {
			t.Errorf("as JSON it is %v, and the text has no %s:\n%s", one, want, text)
		}
	}
}
