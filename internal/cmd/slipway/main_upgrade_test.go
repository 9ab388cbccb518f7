package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// recordAs names a release. The test then writes the data that this version of the program makes
// into testdata/releases, where all later versions have to open it.
var recordAs = flag.String("record", "", "write the data of this version to testdata/releases/NAME")

// TestDataOfReleases opens the data of each released version: testdata/upgrade/open.txtar contains
// the story. The data is a backup that the released version wrote by testdata/upgrade/record.txtar.
func TestDataOfReleases(t *testing.T) {
	t.Parallel()
	if *recordAs != "" {
		dir := filepath.Join("testdata", "releases", *recordAs)
		check.Must(t, os.Mkdir(dir, 0o777))
		ofRelease(t, "record.txtar", dir)
		return
	}
	releases, err := filepath.Glob(filepath.Join("testdata", "releases", "*"))
	if err != nil || len(releases) == 0 {
		t.Fatalf("there is no data of a release: %v", err)
	}
	for _, dir := range releases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			ofRelease(t, "open.txtar", dir)
		})
	}
}

// ofRelease runs a script that finds the directory of a release in $RELEASE. The names and values
// in the directory's file "env" are variables of the script.
func ofRelease(t *testing.T, script, dir string) {
	t.Helper()
	dir, err := filepath.Abs(dir)
	check.Must(t, err)
	variables := map[string]string{"RELEASE": dir}
	text, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		variables[name] = value
	}
	testscript.Run(t, testscript.Params{
		Files: []string{filepath.Join("testdata", "upgrade", script)},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "terminate": terminate, "keep": keep, "credentials": credentials, "typed": typed, "threadid": threadID, "describe-agent": describeAgent,
		},
		Setup: func(env *testscript.Env) error {
			variables := maps.Clone(variables)
			variables["XDG_CONFIG_HOME"] = filepath.Join(env.WorkDir, ".config")
			for name, value := range variables {
				env.Setenv(name, value)
			}
			return nil
		},
	})
}

// TestCommandsRewriteNoDataOfAnEarlierVersion, because a server of that version may be using it and
// could not start again.
func TestCommandsRewriteNoDataOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	backup, err := os.Open(filepath.Join("testdata", "releases", "before-0.1", "data.tar.gz"))
	check.Must(t, err)
	defer backup.Close()
	at := recordsSource{data: filepath.Join(t.TempDir(), "data")}
	if _, err := standalone.Restore(t.Context(), backup, at.data); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join(at.data, standalone.DatabaseFile)
	before, err := os.ReadFile(database)
	check.Must(t, err)
	r, err := at.openData(t.Context())
	if err == nil {
		err = r.close()
		t.Errorf("the command works on the data, and ends with %v", err)
	} else if want := "start the server of this version first"; !strings.Contains(err.Error(), want) {
		t.Errorf("the command fails with %q, want %q", err, want)
	}
	if after, err := os.ReadFile(database); err != nil || string(before) != string(after) {
		t.Errorf("the data has changed (%v)", err)
	}
}
