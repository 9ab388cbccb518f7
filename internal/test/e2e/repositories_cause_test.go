//go:build repositories

package e2e_test

import "testing"

// TestCauses checks that the table names no machine and no package registry.
func TestCauses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/srv/data/builds/1/src/graph.py has no variable":                                  "R: graph.py has no variable",
		"error: Failed to fetch: https://packages.example.com/simple/x/":                   "R: error: Failed to fetch:",
		"No such file: /usr/local/lib/python3.12/os.py":                                    "R: No such file:",
		"<object at 0x7f00aa11bb22> is | no graph":                                         "R: <object at > is / no graph",
		"cannot import 'b' from 'a.b' (/srv/env/lib/a/b.py)":                               "R: cannot import 'b' from 'a.b'",
		"libs/api/tests/graphs/agent.json cannot be used: see ./src/agent.ts":              "R: libs/api/tests/graphs/agent.json cannot be used: see ./src/agent.ts",
		"no package '/srv/builds/2/src/libs/shared' for /srv/builds/2/src/apps/src/a.ts":   "R: no package 'libs/shared' for a.ts",
		"change it with PATCH /assistants/{assistant_id}":                                  "R: change it with PATCH /assistants/{assistant_id}",
		"it exited with code 1. Its last output:\nResolving\nerror: no such package\nmore": "R: error: no such package",
	} {
		if got := (public{}).cause("R:", text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
