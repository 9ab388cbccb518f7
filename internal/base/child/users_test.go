package child_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestUsersStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.json")
	want := map[string]int{"one": 2000, "two": 2001}
	for range 2 {
		users, err := child.OpenUsers(path, child.UserRange{First: 2000, Last: 2001})
		check.Must(t, err)
		for _, workspace := range []string{"one", "two"} {
			if user, err := users.Of(workspace); err != nil || user != want[workspace] {
				t.Errorf("workspace %s has user %d, %v; want %d", workspace, user, err, want[workspace])
			}
		}
		if user, err := users.Of("three"); err == nil {
			t.Errorf("beyond its range it gave %d", user)
		}
	}
	var none *child.Users
	if user, err := none.Of("one"); user != 0 || err != nil {
		t.Errorf("no users gave %d, %v", user, err)
	}
}

// TestUsersAfterTheRangeHasChanged checks that workspaces keep users of an earlier range, and that
// others get users of the present range, whether it is above the earlier one or below.
func TestUsersAfterTheRangeHasChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "users.json")
	for workspace, c := range []struct {
		users child.UserRange
		want  int
	}{
		{child.UserRange{First: 5000, Last: 5009}, 5000},
		{child.UserRange{First: 2000, Last: 2009}, 2000},
		{child.UserRange{First: 2000, Last: 2009}, 2001},
		{child.UserRange{First: 4990, Last: 5009}, 5001},
		{child.UserRange{First: 7000, Last: 7009}, 7000},
	} {
		users, err := child.OpenUsers(path, c.users)
		check.Must(t, err)
		if user, err := users.Of(fmt.Sprint(workspace)); err != nil || user != c.want {
			t.Errorf("workspace %d has user %d of %s, %v; want %d", workspace, user, c.users, err, c.want)
		}
		if user, err := users.Of("0"); err != nil || user != 5000 {
			t.Errorf("with %s, workspace 0 has user %d, %v; want 5000", c.users, user, err)
		}
	}
}

func TestParseUsers(t *testing.T) {
	t.Parallel()
	if users, err := child.ParseUsers("2000-3000"); err != nil || users != (child.UserRange{First: 2000, Last: 3000}) {
		t.Errorf("got %v, %v", users, err)
	}
	for _, text := range []string{"", "2000", "0-3000", "3000-2000", "a-b", "2000-3000-4000", "-1-5", "2000-99999999999"} {
		if users, err := child.ParseUsers(text); err == nil {
			t.Errorf("%q is %v", text, users)
		}
	}
}
