package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestAResourceSpecIsStoredAsItWasRead sends numbers, names and members that programs could
// read in more than one way. The text that is stored has one meaning only.
func TestAResourceSpecIsStoredAsItWasRead(t *testing.T) {
	t.Parallel()
	rule(t, "Read-only members, unknown members and unknown query parameters are ignored.")
	f := setUp(t)
	for i, c := range []struct{ sent, want string }{
		{`{"memory_mb":512.0}`, `{"memory_mb":512}`},
		{`{"memory_mb":5e2,"cpu":1.50}`, `{"memory_mb":500,"cpu":1.50}`},
		{`{"min_scale":1.0,"max_scale":20e-1}`, `{"min_scale":1,"max_scale":2}`},
		{`{"min_scale":"x","min_scale":1}`, `{"min_scale":1}`},
		{`{"Memory_MB":"512Mi","Cpu":"x","Volumes":5,"Min_Scale":9}`, `{}`},
		{`{"memory_mb":null,"labels":{"A":"a","a":"b"}}`, `{"memory_mb":null,"labels":{"A":"a","a":"b"}}`},
		{`{"unknown":{"Cpu":1.0,"Cpu":2.0},"cpu":1}`, `{"unknown":{"Cpu":1.0,"Cpu":2.0},"cpu":1}`},
		{`{"volumes":[{"Name":5,"name":"data","emptyDir":{"sizeLimit":"1Gi","x":1.0}}]}`, `{"volumes":[{"name":"data","emptyDir":{"sizeLimit":"1Gi","x":1.0}}]}`},
	} {
		text := fmt.Sprintf(`{"name":"d%d","source":"external_docker","secrets":[],"source_config":{"resource_spec":%s},"source_revision_config":{"image_uri":"a"}}`, i, c.sent)
		created := f.call(t, "POST", "/v2/deployments", text)
		if created.StatusCode != http.StatusCreated || !strings.Contains(string(created.text), `"resource_spec":`+c.want+`}`) {
			t.Errorf("%s: got %d %s", c.sent, created.StatusCode, created.text)
		}
	}
}
