package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/base/disk"
)

// Users gives each workspace a user of its own, out of a range of numbers that no other
// program on the machine may use. A workspace keeps its user for good. A nil Users gives no
// users.
type Users struct {
	path  string
	Range UserRange

	mu sync.Mutex
	of map[string]int
	// programs are the programs of each user.
	programs map[int]*programs
}

// programs counts the agents and builds of a user that run.
type programs struct {
	sync.Mutex

	running int
}

// UserRange is a range of users, both ends included.
type UserRange struct{ First, Last int }

func (r UserRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// DefaultUsers is a range from which neither people, nor services, nor containers of common
// tools get users.
var DefaultUsers = UserRange{First: 1_879_048_192, Last: 1_879_113_727}

// ParseUsers reads a range as FIRST-LAST.
func ParseUsers(text string) (UserRange, error) {
	first, last, _ := strings.Cut(text, "-")
	from, err := strconv.ParseInt(first, 10, 32)
	to, failed := strconv.ParseInt(last, 10, 32)
	if err != nil || failed != nil || from < 1000 || to < from {
		return UserRange{}, fmt.Errorf("%q is not a range of users FIRST-LAST, of which the first is 1000 or more", text)
	}
	return UserRange{int(from), int(to)}, nil
}

// OpenUsers reads the users of workspaces from a file.
func OpenUsers(path string, users UserRange) (*Users, error) {
	u := &Users{path: path, Range: users, of: map[string]int{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &u.of)
	}
	if err != nil {
		return nil, fmt.Errorf("read users of workspaces: %w", err)
	}
	return u, nil
}

// Of is the user of a workspace.
func (u *Users) Of(workspace string) (int, error) {
	if u == nil {
		return 0, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if user := u.of[workspace]; user != 0 {
		return user, nil
	}
	user := u.Range.First
	for _, taken := range u.of {
		if taken <= u.Range.Last { // the others are of an earlier range
			user = max(user, taken+1)
		}
	}
	if user > u.Range.Last {
		return 0, fmt.Errorf("all users from %d to %d belong to workspaces: give the server a larger range", u.Range.First, u.Range.Last)
	}
	of := maps.Clone(u.of)
	of[workspace] = user
	if err := u.write(of); err != nil {
		return 0, fmt.Errorf("note user of workspace %s: %w", workspace, err)
	}
	u.of = of
	return user, nil
}

// Enter notes that an agent or a build of a user begins. When the last of them ends, the function
// that it got here removes what the user's programs have left in SharedMemory. The server's own
// user, 0, keeps its files.
func (u *Users) Enter(user int) (leave func() error) {
	if u == nil || user == 0 {
		return func() error { return nil }
	}
	u.mu.Lock()
	if u.programs == nil {
		u.programs = map[int]*programs{}
	}
	p := u.programs[user]
	if p == nil {
		p = &programs{}
		u.programs[user] = p
	}
	u.mu.Unlock()
	p.Lock() // the next program does not begin before the files of earlier ones are removed
	defer p.Unlock()
	p.running++
	return sync.OnceValue(func() error {
		p.Lock()
		defer p.Unlock()
		if p.running--; p.running > 0 {
			return nil
		}
		return removeShared(user)
	})
}

// write stores all users durably, or changes nothing, because files already belong to these
// users.
func (u *Users) write(of map[string]int) error {
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return disk.Replace(u.path, text, 0o600)
}
