package docker

import (
	"strings"
	"testing"
)

// TestAttackThatReadsAProxysPassword checks which variables about proxies the steps of a
// tenant's image get.
func TestAttackThatReadsAProxysPassword(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://company:open-sesame@proxy.example:3128")
	t.Setenv("https_proxy", "http://token-sesame@proxy.example:3128")
	t.Setenv("NO_PROXY", "localhost,.example")
	given := proxies()
	for name, want := range map[string]string{"HTTP_PROXY": "http://proxy.example:3128", "https_proxy": "http://proxy.example:3128", "NO_PROXY": "localhost,.example"} {
		if given[name] == nil || *given[name] != want {
			t.Errorf("a step is told no %s=%s", name, want)
		}
	}
	for name, value := range given {
		if strings.Contains(*value, "sesame") {
			t.Errorf("a step knows a password: %s=%s", name, *value)
		}
	}
}
