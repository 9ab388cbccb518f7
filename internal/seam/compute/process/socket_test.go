package process_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// tell invokes an agent, at its socket or its port, and returns its answer.
func (m machine) tell(t *testing.T, endpoint compute.Endpoint, words string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(patience(t), http.MethodPost, endpoint.URL+"/invocations", strings.NewReader(words))
	check.Must(t, err)
	request.Header.Set("Authorization", "Bearer "+endpoint.Token)
	client := http.Client{Transport: &http.Transport{DialContext: m.Dialer(new(net.Dialer).DialContext), DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return string(answer), err
}

// socketOf returns the path that an agent is offered, "" if it is offered no socket.
func (m machine) socketOf(t *testing.T, endpoint compute.Endpoint) string {
	t.Helper()
	answer, err := m.tell(t, endpoint, "environment")
	check.Must(t, err)
	var environment []string
	check.Must(t, json.Unmarshal([]byte(answer), &environment))
	for _, variable := range environment {
		if path, found := strings.CutPrefix(variable, "SLIPWAY_SOCKET="); found {
			return path
		}
	}
	return ""
}

// TestAnAgentTakesASocket and is reached there, or listens at its port.
func TestAnAgentTakesASocket(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	long := newMachine(t, func(c *process.Config) { c.Dir = filepath.Join(c.Dir, strings.Repeat("x", 90)) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	check.Must(t, err)
	check.Must(t, free.Close())
	for name, c := range map[string]struct {
		machine       machine
		env           []string
		offered, took bool
	}{
		"it takes it":       {m, []string{"TAKE=socket"}, true, true},
		"it takes its port": {m, nil, true, false},
		"it has a port":     {m, []string{"TAKE=socket", "PORT=" + port}, false, false},
		"paths are long":    {long, []string{"TAKE=socket"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := computetest.NewRelease(computetest.Serve, c.env...)
			c.machine.apply(t, r)
			c.machine.want(t, r, compute.Healthy, "")
			endpoint, leave := c.machine.acquire(t, r)
			path := c.machine.socketOf(t, endpoint)
			leave()
			if took := strings.HasSuffix(endpoint.URL, ".agent"); (path != "") != c.offered || took != c.took {
				t.Errorf("the agent is offered %q and reached at %s", path, endpoint.URL)
			}
			check.Must(t, c.machine.Remove(t.Context(), r.Ref))
			eventually(t, "the socket is gone", func() bool {
				_, err := os.Lstat(filepath.Dir(path))
				return path == "" || os.IsNotExist(err)
			})
		})
	}
}
