// Package mototest runs moto, which emulates the services of AWS over HTTP, for tests with the
// build tag moto. setup.sh installs it.
//
// moto stores the data of requests and refuses requests for missing objects, but nothing
// happens in it by itself: tasks do not run, services do not register targets, builds end at
// the first read and export nothing, and deleted services do not drain. It does not support
// Express Mode at all. Code that depends on such behaviour is tested with prepared answers.
package mototest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/emulator/foreign"
)

// Region is the region of the account.
const Region = "eu-central-1"

// Start runs moto until the end of the test, with further variables, and returns its URL.
func Start(t *testing.T, env ...string) string {
	t.Helper()
	server, err := filepath.Abs(filepath.Join(root(t), ".tools", "moto", "bin", "moto_server"))
	if err != nil {
		t.Fatal(err)
	}
	port, err := foreign.Port()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(server, "-H", "127.0.0.1", "-p", strconv.Itoa(port))
	command.Env = append(os.Environ(), env...)
	if err := command.Start(); err != nil {
		t.Fatalf("start moto (was setup.sh run?): %v", err)
	}
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil {
			t.Error(err)
		}
		command.Wait()
	})
	url := "http://127.0.0.1:" + strconv.Itoa(port)
	await(t, url)
	return url
}

// root is the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod")
		}
		dir = filepath.Dir(dir)
	}
}

// await waits until moto answers.
func await(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/moto-api/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("moto does not answer")
		}
	}
}
