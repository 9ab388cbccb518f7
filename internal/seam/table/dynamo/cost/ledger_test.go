package cost_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/test/check"
)

var update = flag.Bool("update", false, "write COST.md instead of comparing it")

// document is one of the interface documents: the method and path of each operation, by its name.
type document struct {
	title      string
	operations map[string]operation
}

type operation struct{ method, path string }

var (
	controlPlane = read("Control plane", openapi.ControlPlane)
	agentServer  = read("Agent server", openapi.AgentServer)
	documents    = []*document{controlPlane, agentServer}
)

func read(title string, text []byte) *document {
	var parsed struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		panic(err)
	}
	d := &document{title, map[string]operation{}}
	for path, methods := range parsed.Paths {
		for method, of := range methods {
			var named struct{ OperationID string }
			if json.Unmarshal(of, &named) == nil && named.OperationID != "" {
				d.operations[named.OperationID] = operation{strings.ToUpper(method), path}
			}
		}
	}
	return d
}

// undriven are the operations that are not measured, with the reasons.
var undriven = map[string]string{
	"CancelRevision":       "it takes 5 reads and 15 writes, and twice that when it loses the race against the rollout that it ends, so that no line of it holds",
	"CompareRevisions":     "it costs what GetRevision costs, and reads one more revision",
	"ConfirmAuth":          "it exchanges a code at the provider, and functions call public addresses only",
	"CreatePushToken":      "it asks a registry, which a stack has only where its agents are containers; of the table it reads the deployment",
	"DiscoverAuthProvider": "it asks an MCP server, and functions call public addresses only",
	"ExplainRevision":      "it takes a revision that failed, and costs what ListRevisionLogs costs",
	"ExplainRun":           "it reads the run and its events, as StreamRun does for a run that has ended",
	"FinishAuth":           "it exchanges a code at the provider, and functions call public addresses only",
	"GetAgentCard":         "it costs what GetAssistant costs",
	"GetAssistantCard":     "it costs what GetAssistant costs",
	"GetMetrics":           "the platform of a stack has its figures, so functions refuse it",
	"OpenThreadSocket":     "a stack on AWS refuses it after it has authenticated its caller",
	"SendA2AMessage":       "it asks for what GetAssistant and, for a message, CreateRun, JoinRun, GetRun and ListRuns cost",
	"SendMCPMessage":       "it asks for what SearchAssistants and, for a call, CreateStatelessRunWait cost",
	"StreamThreadEvents":   "it reads what StreamThread reads, and outlives its client and its thread until the time of its function is up, so that the stack does not become quiet",
}

// exceptions is the text about them in the report.
func exceptions() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(undriven)) {
		fmt.Fprintf(&b, "- %s: %s.\n", name, undriven[name])
	}
	return b.String()
}

// heading begins the line over a document's table in the report.
const heading = "### "

// costFile is the path of the report, relative to this directory.
var costFile = filepath.Join("..", "COST.md")

// listed returns the operations that have a row in a report, by the title of their document.
func listed(report string) map[string][]string {
	row := regexp.MustCompile(`^\| (\w+) \|`)
	rows := map[string][]string{}
	title := ""
	for line := range strings.SplitSeq(report, "\n") {
		switch found := row.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "#"):
			title, _ = strings.CutPrefix(line, heading)
		case found != nil && found[1] != "Operation":
			rows[title] = append(rows[title], found[1])
		}
	}
	return rows
}

// unaccounted returns the operations that are missing in a list of measured operations, or
// should not be in it.
func unaccounted(measured map[string][]string) []string {
	var list []string
	for _, d := range documents {
		for name := range d.operations {
			switch _, excepted := undriven[name]; {
			case excepted && slices.Contains(measured[d.title], name):
				list = append(list, name+" is measured, and excepted")
			case !excepted && !slices.Contains(measured[d.title], name):
				list = append(list, name+" is not measured")
			}
		}
		for _, name := range measured[d.title] {
			if _, ok := d.operations[name]; !ok {
				list = append(list, name+" is measured, and no operation")
			}
		}
	}
	for name := range undriven {
		if !slices.ContainsFunc(documents, func(d *document) bool { _, ok := d.operations[name]; return ok }) {
			list = append(list, name+" is excepted, and no operation")
		}
	}
	slices.Sort(list)
	return list
}

// TestEveryOperationHasItsCost needs only the files, so that a missing new operation is
// noticed at once.
func TestEveryOperationHasItsCost(t *testing.T) {
	t.Parallel()
	if *update {
		return // TestCost checks the report that it writes
	}
	text, err := os.ReadFile(costFile)
	check.Must(t, err)
	report := string(text)
	for _, problem := range unaccounted(listed(report)) {
		t.Errorf("COST.md: %s: add it to steps_test.go, or with a reason to undriven, and run `make test-cost UPDATE=1`", problem)
	}
	if !strings.Contains(report, "\n\n"+exceptions()+"\n") {
		t.Errorf("COST.md does not except what undriven does: run `make test-cost UPDATE=1`; want\n%s", exceptions())
	}
}

// TestOperationsAreMissed checks the check.
func TestOperationsAreMissed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, d := range documents {
		fmt.Fprintf(&b, "%s%s\n\n| Operation | Reads |\n|---|---|\n", heading, d.title)
		for name := range d.operations {
			if undriven[name] == "" && (d != agentServer || name != "GetOK") {
				fmt.Fprintf(&b, "| %s | 1 |\n", name)
			}
		}
		b.WriteString("| Extra | 1 |\n")
	}
	b.WriteString("## Others\n\n| GetOK | 1 |\n") // this is no table of operations
	want := []string{"Extra is measured, and no operation", "Extra is measured, and no operation", "GetOK is not measured"}
	if got := unaccounted(listed(b.String())); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
