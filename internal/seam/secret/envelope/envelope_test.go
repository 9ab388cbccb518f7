package envelope_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
	"github.com/slipway-run/slipway/internal/test/check"
)

var bound = secret.Bound{Workspace: "workspace", Resource: "resource"}

func keyring(t *testing.T, roots ...[]byte) *envelope.Keyring {
	t.Helper()
	r, err := envelope.NewKeyring(roots...)
	check.Must(t, err)
	return r
}

func seal(t *testing.T, r *envelope.Keyring, plain string) []byte {
	t.Helper()
	sealed, err := r.Seal(t.Context(), bound, []byte(plain))
	check.Must(t, err)
	return sealed
}

// TestWhatWasStoredStaysReadable holds texts that the first version made: another derivation
// or layout would lose every secret and every API key.
func TestWhatWasStoredStaysReadable(t *testing.T) {
	t.Parallel()
	root := make([]byte, envelope.RootSize)
	for i := range root {
		root[i] = byte(i)
	}
	sealed, err := hex.DecodeString("01480528de8657120857254effa7b7daa155d169844f7bd3798f5cc97c3c120e9ed3ea5a75e35b64bced63b2")
	check.Must(t, err)
	r := keyring(t, root)
	if plain, err := r.Open(t.Context(), bound, sealed); err != nil || string(plain) != "open-sesame" {
		t.Errorf("Open: got %q, %v", plain, err)
	}
	const mac = "55903afa08e3074347974c509e11f68b9e5914ca129d9510f16f915a65b9e877"
	if got := hex.EncodeToString(r.MAC("api key", []byte("sk-1"))); got != mac {
		t.Errorf("MAC: got %s, want %s", got, mac)
	}
}

func TestNewestSealsAllOpen(t *testing.T) {
	t.Parallel()
	first, second := envelope.NewRoot(), envelope.NewRoot()
	before, after, stranger := keyring(t, first), keyring(t, first, second), keyring(t, second)
	for name, sealed := range map[string][]byte{"before": seal(t, before, "open-sesame"), "after": seal(t, after, "open-sesame")} {
		if plain, err := after.Open(t.Context(), bound, sealed); err != nil || string(plain) != "open-sesame" {
			t.Errorf("sealed %s the second key came: got %q, %v", name, plain, err)
		}
	}
	if _, err := stranger.Open(t.Context(), bound, seal(t, after, "open-sesame")); err != nil {
		t.Errorf("the newest key does not seal: %v", err)
	}
	if _, err := before.Open(t.Context(), bound, seal(t, after, "open-sesame")); !errors.Is(err, envelope.ErrUnknownKey) {
		t.Errorf("opened without the key: got %v", err)
	}
}

func TestFingerprintsStay(t *testing.T) {
	t.Parallel()
	first, second := envelope.NewRoot(), envelope.NewRoot()
	before, after := keyring(t, first), keyring(t, first, second)
	if !bytes.Equal(before.MAC("api key", []byte("sk-1")), after.MAC("api key", []byte("sk-1"))) {
		t.Error("a second key locks every API key out")
	}
}

func TestNewKeyringRefuses(t *testing.T) {
	t.Parallel()
	root := envelope.NewRoot()
	for want, roots := range map[string][][]byte{
		"needs a key": nil, "has 31 bytes": {root[1:]}, "has 33 bytes": {append(root[:32:32], 0)}, "the same id": {root, root},
	} {
		if _, err := envelope.NewKeyring(roots...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestFingerprintsOfAllKeys(t *testing.T) {
	t.Parallel()
	first, second := envelope.NewRoot(), envelope.NewRoot()
	one, other, both := keyring(t, first), keyring(t, second), keyring(t, first, second)
	want := [][]byte{other.MAC("api key", []byte("sk-1")), one.MAC("api key", []byte("sk-1"))}
	if got := both.MACs("api key", []byte("sk-1")); !slices.EqualFunc(got, want, bytes.Equal) || both.Len() != 2 {
		t.Errorf("got %x, want the newest first: %x", got, want)
	}
}
