package main

import (
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// served serves the repositories below the script's directory over HTTP, and sets $GIT to the
// address: deployments of a file:// repository cannot build pushes.
func served(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: served")
	}
	libexec, err := exec.Command("git", "--exec-path").Output()
	ts.Check(err)
	server := httptest.NewServer(&cgi.Handler{
		Stderr: os.Stderr, Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + ts.MkAbs("."), "GIT_HTTP_EXPORT_ALL=1"},
	})
	ts.Defer(server.Close)
	ts.Setenv("GIT", server.URL)
}
