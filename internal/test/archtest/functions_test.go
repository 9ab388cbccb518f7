package archtest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestFunctionsStaySmall checks that functions link nothing that only one machine has, and no
// template engine: it finds methods by their names, and a linker that sees a template engine keeps
// every method of every SDK in the program (7 MB of methods, when it was tried).
func TestFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	linked := goList(t, "{{.ImportPath}}", "-deps", "-tags", "lambda.norpc", "./functions/...")
	for _, engine := range []string{"text/template", "html/template"} {
		if slices.Contains(linked, engine) {
			t.Errorf("a function links %s", engine)
		}
	}
	for _, folder := range []string{"api/console", "api/signin", "cmd/cli"} {
		if slices.Contains(linked, module+"internal/"+folder) {
			t.Errorf("a function links %s, which only one machine has", folder)
		}
	}
}

// forPeople are the packages that people use: the console and the command line.
var forPeople = []string{"./internal/api/console", "./internal/cmd/cli"}

// maxEmbedded is how many bytes the files of these packages may add to the program. With the files,
// the packages and the modules below, the program grew by 602112 bytes when it was measured; it may
// grow by 2 MB.
const maxEmbedded = 200_000

// modulesForPeople are the modules that the program links only for its command line.
var modulesForPeople = []string{
	"github.com/cli/browser", "github.com/clipperhouse/uax29/v2", "github.com/fsnotify/fsnotify", "github.com/godbus/dbus/v5", "github.com/mattn/go-runewidth", "github.com/spf13/cobra", "github.com/spf13/pflag",
	"github.com/zalando/go-keyring", "golang.org/x/term",
}

// TestTheProgramGrowsLittleForPeople: the size of the program is not compared itself, since to link
// it twice takes long. What makes it grow is: files that are embedded, and modules.
func TestTheProgramGrowsLittleForPeople(t *testing.T) {
	t.Parallel()
	embedded := int64(0)
	for _, file := range goList(t, "{{$dir := .Dir}}{{range .EmbedFiles}}{{$dir}}/{{.}}\n{{end}}", forPeople...) {
		info, err := os.Stat(file)
		check.Must(t, err)
		embedded += info.Size()
	}
	if embedded < 50_000 || embedded > maxEmbedded {
		t.Errorf("%d bytes are embedded, want at most %d", embedded, maxEmbedded)
	}
	const ofModule = "{{with .Module}}{{.Path}}{{end}}"
	servers := goList(t, ofModule, "-deps", "./internal/host/standalone")
	var added []string
	for _, name := range goList(t, ofModule, append([]string{"-deps"}, forPeople...)...) {
		if !slices.Contains(servers, name) && !slices.Contains(added, name) {
			added = append(added, name)
		}
	}
	slices.Sort(added)
	if !slices.Equal(added, modulesForPeople) {
		t.Errorf("the modules %q are linked for people, want %q", added, modulesForPeople)
	}
}

// goList returns the words that `go list` prints for Linux in a format.
func goList(t *testing.T, format string, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-f", format}, args...)...)
	cmd.Dir, cmd.Stderr, cmd.Env = top, os.Stderr, append(os.Environ(), "GOOS=linux")
	out, err := cmd.Output()
	check.Must(t, err)
	return strings.Fields(string(out))
}

// TestWorkersWaitForTheTable: a function that answers requests soon gives up on a busy table,
// but a function that a workflow or a timer calls does not.
func TestWorkersWaitForTheTable(t *testing.T) {
	t.Parallel()
	workers := 0
	for _, f := range files(t) {
		if !strings.HasPrefix(f.name, "functions/") || !strings.HasSuffix(f.name, "/main.go") {
			continue
		}
		works := strings.Contains(f.text, "lambdahost.Task(") || strings.Contains(f.text, "lambdahost.Schedule(")
		if patient := strings.Contains(f.text, "s.Patient = true"); works != patient {
			t.Errorf("%s: patient: %t, want %t", f.name, patient, works)
		}
		if works {
			workers++
		}
	}
	if workers != 4 {
		t.Errorf("got %d workers, want 4", workers)
	}
}
