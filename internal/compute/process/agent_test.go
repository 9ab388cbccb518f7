package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/compute/computetest"
	"github.com/slipway-run/slipway/internal/compute/process"
	"github.com/slipway-run/slipway/internal/revisionlog/files"
)

// The test binary is also the agents that the tests run; AGENT says which. Those that are not of computetest are here.
func TestMain(m *testing.M) {
	computetest.Main()
	switch agent := os.Getenv("AGENT"); agent {
	case "":
		// The server's environment has something that no agent may see.
		if err := os.Setenv("PLANTED_SERVER_SECRET", "planted-server-secret"); err != nil {
			panic(err)
		}
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/child.runStartThread"))
	case "server":
		serveTarget()
	case "rival":
		loseThePort()
	default:
		panic("unknown agent " + agent)
	}
}

// loseThePort is an agent that finds its port taken: the first time only, or always.
func loseThePort() {
	if os.Getenv("ALWAYS") == "" && computetest.Mark("lost") {
		computetest.RunAgent()
	}
	fmt.Println("listen tcp: bind: address already in use")
	os.Exit(1)
}

// serveTarget is a server with one healthy release that says where the release answers, and lives until it is killed.
func serveTarget() {
	dir := os.Getenv("DIR")
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check(err)
	target, err := process.New(process.Config{Dir: filepath.Join(dir, "agents"), Logs: logs, Log: slog.Default()})
	check(err)
	r := computetest.NewRelease(computetest.Serve, "STUBBORN=1")
	// A shell in between: the agent is a grandchild, which no kernel ends with the server.
	r.Artifact.Start = []string{"sh", "-c", program() + "; true"}
	check(target.Apply(context.Background(), r))
	endpoint, _, err := target.Acquire(context.Background(), r.Ref)
	check(err)
	check(json.NewEncoder(os.Stdout).Encode(endpoint))
	<-time.After(time.Hour)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func program() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}
