package keyfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/test/check"
)

var bound = secret.Bound{Workspace: "workspace", Resource: "resource"}

func load(t *testing.T, path string) *keyfile.Key {
	t.Helper()
	key, err := keyfile.Load(path)
	check.Must(t, err)
	return key
}

func newKey(t *testing.T) *keyfile.Key {
	t.Helper()
	return load(t, filepath.Join(t.TempDir(), "data", "key"))
}

func seal(t *testing.T, key secret.Sealer, plain string) []byte {
	t.Helper()
	sealed, err := key.Seal(t.Context(), bound, []byte(plain))
	check.Must(t, err)
	return sealed
}

func TestOpenReturnsWhatWasSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	key, again := load(t, path), load(t, path)
	for _, plain := range []string{"", "open-sesame", strings.Repeat("x", 1<<20)} {
		got, err := again.Open(t.Context(), bound, seal(t, key, plain))
		if err != nil || string(got) != plain {
			t.Errorf("got %d bytes, %v; want the %d that were sealed", len(got), err, len(plain))
		}
	}
}

func TestSealNeverRepeats(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	one, other := seal(t, key, "open-sesame"), seal(t, key, "open-sesame")
	if bytes.Equal(one, other) || bytes.Contains(one, []byte("sesame")) {
		t.Errorf("sealed twice: %x and %x", one, other)
	}
}

func TestOpenRefusesAnotherBound(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	sealed := seal(t, key, "open-sesame")
	for _, other := range []secret.Bound{
		{}, {Workspace: "workspace"}, {Workspace: "other", Resource: "resource"}, {Workspace: "workspace", Resource: "other"},
		{Workspace: "resource", Resource: "workspace"}, {Workspace: "workspacer", Resource: "esource"}, {Workspace: "workspaceresource"},
	} {
		if got, err := key.Open(t.Context(), other, sealed); err == nil {
			t.Errorf("%+v: opened %q", other, got)
		}
	}
}

func TestOpenRefusesEveryChange(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	sealed := seal(t, key, "open-sesame")
	for i := range sealed {
		changed := slices.Clone(sealed)
		changed[i] ^= 1
		if got, err := key.Open(t.Context(), bound, changed); err == nil {
			t.Errorf("byte %d changed: opened %q", i, got)
		}
		if got, err := key.Open(t.Context(), bound, sealed[:i]); err == nil {
			t.Errorf("cut at byte %d: opened %q", i, got)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	sealed := seal(t, key, "open-sesame")
	newer := slices.Clone(sealed)
	newer[0] = 2
	for want, open := range map[string]func() ([]byte, error){
		"sealed with another key": func() ([]byte, error) { return other.Open(t.Context(), bound, sealed) },
		"unknown version 2":       func() ([]byte, error) { return key.Open(t.Context(), bound, newer) },
		"cut short":               func() ([]byte, error) { return key.Open(t.Context(), bound, nil) },
		"another resource":        func() ([]byte, error) { return key.Open(t.Context(), secret.Bound{}, sealed) },
	} {
		if _, err := open(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMAC(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	key, again, other := load(t, path), load(t, path), newKey(t)
	mac := key.MAC("api key", []byte("sk-1"))
	if len(mac) != 32 {
		t.Errorf("got %d bytes, want 32", len(mac))
	}
	if !bytes.Equal(mac, again.MAC("api key", []byte("sk-1"))) {
		t.Error("the same key file gives another MAC")
	}
	for name, different := range map[string][]byte{
		"data": key.MAC("api key", []byte("sk-2")), "purpose": key.MAC("webhook", []byte("sk-1")), "key": other.MAC("api key", []byte("sk-1")),
	} {
		if bytes.Equal(mac, different) {
			t.Errorf("another %s gives the same MAC", name)
		}
	}
}

func TestLoadCreatesAPrivateFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	load(t, filepath.Join(dir, "key"))
	entries, err := os.ReadDir(dir)
	check.Must(t, err)
	if len(entries) != 1 {
		t.Fatalf("got files %v, want only the key", entries)
	}
	info, err := entries[0].Info()
	check.Must(t, err)
	if info.Mode() != 0o600 || info.Size() != 32 {
		t.Errorf("key file has mode %s and %d bytes, want -rw------- and 32", info.Mode(), info.Size())
	}
}

func TestLoadAtTheSameTimeGivesOneKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	macs := make([][]byte, 16)
	var loaders sync.WaitGroup
	for i := range macs {
		loaders.Go(func() {
			key, err := keyfile.Load(path)
			if err != nil {
				t.Error(err)
				return
			}
			macs[i] = key.MAC("", nil)
		})
	}
	loaders.Wait()
	for _, mac := range macs {
		if !bytes.Equal(mac, macs[0]) {
			t.Fatal("two loaders got different keys")
		}
	}
}

func TestLoadRefusesABadFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(path string) error
		want    string
	}{
		"the group may read": {func(path string) error { return write(path, 32, 0o640) }, "mode 0640"},
		"others may read":    {func(path string) error { return write(path, 32, 0o604) }, "mode 0604"},
		"empty":              {func(path string) error { return write(path, 0, 0o600) }, "does not hold keys of 32 bytes"},
		"short":              {func(path string) error { return write(path, 31, 0o600) }, "does not hold keys of 32 bytes"},
		"long":               {func(path string) error { return write(path, 33, 0o600) }, "does not hold keys of 32 bytes"},
		"cut":                {func(path string) error { return write(path, 95, 0o600) }, "does not hold keys of 32 bytes"},
		"one key twice":      {func(path string) error { return write(path, 64, 0o600) }, "the same id"},
		"a directory":        {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"below a file":       {func(path string) error { return write(filepath.Dir(path), 0, 0o600) }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			if name == "below a file" {
				path = filepath.Join(t.TempDir(), "file", "key")
			}
			check.Must(t, c.prepare(path))
			if _, err := keyfile.Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func write(path string, size int, mode os.FileMode) error {
	if err := os.WriteFile(path, make([]byte, size), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode) // whatever the umask is
}

// TestRotation has a process that started before the rotation, and a process that starts after
// it.
func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	before := load(t, path)
	old, mac := seal(t, before, "older"), before.MAC("api key", []byte("sk-1"))
	count, err := keyfile.Rotate(path)
	check.Must(t, err)
	if count != 2 {
		t.Errorf("there are %d keys, want 2", count)
	}
	after := load(t, path)
	newer := seal(t, after, "newer")
	for name, key := range map[string]*keyfile.Key{"before": before, "after": after} {
		for want, sealed := range map[string][]byte{"older": old, "newer": newer} {
			if got, err := key.Open(t.Context(), bound, sealed); err != nil || string(got) != want {
				t.Errorf("%s: got %q (%v), want %q", name, got, err, want)
			}
		}
		if sealed := seal(t, key, "x"); bytes.Equal(sealed[:5], old[:5]) || !bytes.Equal(sealed[:5], newer[:5]) {
			t.Errorf("%s: the new key does not seal", name)
		}
		macs := key.MACs("api key", []byte("sk-1"))
		if len(macs) != 2 || !bytes.Equal(macs[1], mac) || !bytes.Equal(key.MAC("api key", []byte("sk-1")), mac) {
			t.Errorf("%s: got %x, want the newer one before %x", name, macs, mac)
		}
	}
}

// TestAProcessNoticesARotation checks each way to notice one, one at a time.
func TestAProcessNoticesARotation(t *testing.T) {
	t.Parallel()
	for name, notice := range map[string]func(*testing.T, *keyfile.Key, []byte){
		"it seals": func(t *testing.T, key *keyfile.Key, newer []byte) {
			if sealed := seal(t, key, "x"); !bytes.Equal(sealed[:5], newer[:5]) {
				t.Error("with an older key")
			}
		},
		"it opens": func(t *testing.T, key *keyfile.Key, newer []byte) {
			if _, err := key.Open(t.Context(), bound, newer); err != nil {
				t.Error(err)
			}
		},
		"it looks": func(t *testing.T, key *keyfile.Key, _ []byte) {
			for _, want := range []bool{true, false} {
				if found, err := key.Refresh(t.Context()); err != nil || found != want {
					t.Errorf("got %v (%v), want %v", found, err, want)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "key")
			key := load(t, path)
			_, err := keyfile.Rotate(path)
			check.Must(t, err)
			notice(t, key, seal(t, load(t, path), "newer"))
			if n := len(key.MACs("", nil)); n != 2 {
				t.Errorf("it knows %d keys, want 2", n)
			}
		})
	}
}

func TestRotationsAtTheSameTimeEachAddAKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "key")
	first := load(t, path)
	sealed := seal(t, first, "older")
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := keyfile.Rotate(path); err != nil {
				t.Error(err)
			}
		})
		work.Go(func() {
			if _, err := first.Open(t.Context(), bound, seal(t, first, "x")); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	last := load(t, path)
	if n := len(last.MACs("", nil)); n != 9 {
		t.Errorf("there are %d keys, want 9", n)
	}
	if got, err := last.Open(t.Context(), bound, sealed); err != nil || string(got) != "older" {
		t.Errorf("got %q (%v)", got, err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	check.Must(t, err)
	info, err := os.Stat(path)
	check.Must(t, err)
	if len(entries) != 1 || info.Mode() != 0o600 {
		t.Errorf("got files %v, mode %s", entries, info.Mode())
	}
}

// TestWithoutItsFileNothingIsSealed takes the file away: nothing is sealed or rotated, and
// sealed text still opens.
func TestWithoutItsFileNothingIsSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	key := load(t, path)
	sealed := seal(t, key, "older")
	check.Must(t, os.Remove(path))
	if _, err := key.Seal(t.Context(), bound, nil); err == nil {
		t.Error("it sealed")
	}
	if got, err := key.Open(t.Context(), bound, sealed); err != nil || string(got) != "older" {
		t.Errorf("got %q (%v)", got, err)
	}
	if _, err := keyfile.Rotate(path); err == nil {
		t.Error("it rotated what is not there")
	}
}

// TestRetire leaves only the newest key, which then also makes the fingerprints.
func TestRetire(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	old := seal(t, load(t, path), "older")
	for range 2 {
		_, err := keyfile.Rotate(path)
		check.Must(t, err)
	}
	before := load(t, path)
	newer := seal(t, before, "newer")
	if older := before.Older(); len(older) != 2 || !bytes.HasPrefix(old, older[0]) || bytes.HasPrefix(newer, older[1]) {
		t.Errorf("texts of older keys begin with %x", older)
	}
	gone, err := keyfile.Retire(path, before.KeyID())
	check.Must(t, err)
	after := load(t, path)
	if gone != 2 || after.KeyID() != before.KeyID() || len(after.Older()) != 0 {
		t.Errorf("%d keys went, %d older ones are left", gone, len(after.Older()))
	}
	if got, err := after.Open(t.Context(), bound, newer); err != nil || string(got) != "newer" {
		t.Errorf("got %q (%v)", got, err)
	}
	if got, err := after.Open(t.Context(), bound, old); !errors.Is(err, envelope.ErrUnknownKey) {
		t.Errorf("got %q (%v)", got, err)
	}
	if !bytes.Equal(after.MAC("", nil), before.MACs("", nil)[0]) {
		t.Error("the newest key does not make the fingerprints")
	}
	if again, err := keyfile.Retire(path, before.KeyID()); err != nil || again != 0 {
		t.Errorf("again %d keys went (%v)", again, err)
	}
}

// TestRetireNoticesANewerKey keeps all keys when a newer key was made after the caller looked
// at the use of the keys.
func TestRetireNoticesANewerKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	looked := load(t, path).KeyID()
	_, err := keyfile.Rotate(path)
	check.Must(t, err)
	if _, err := keyfile.Retire(path, looked); !errors.Is(err, keyfile.ErrRotated) {
		t.Errorf("got %v", err)
	}
	if n := len(load(t, path).MACs("", nil)); n != 2 {
		t.Errorf("%d keys are left", n)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got files %v (%v)", entries, err)
	}
}
