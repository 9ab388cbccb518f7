package reseal_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/jobs/reseal"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

type fixture struct {
	table *sqlite.Table
	file  string
	key   *keyfile.Key
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	tb := fixtures.TableAt(t, filepath.Join(dir, "table.db"))
	f := &fixture{table: tb, file: filepath.Join(dir, "key")}
	key := fixtures.KeyAt(t, f.file)
	f.key = key
	return f
}

const workspace = "0198b6a2-0000-7000-8000-000000000001"

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (f *fixture) seal(t *testing.T, resource, plain string) []byte {
	t.Helper()
	sealed, err := f.key.Seal(t.Context(), secret.Bound{Workspace: workspace, Resource: resource}, []byte(plain))
	check.Must(t, err)
	return sealed
}

func (f *fixture) put(t *testing.T, key table.Key, kind string, body []byte) {
	t.Helper()
	check.Must(t, f.table.Transact(t.Context(), table.Put{Item: table.Item{Key: key, Attrs: record.Attrs(kind, now, nil), Body: body}}))
}

func (f *fixture) opens(t *testing.T, key *keyfile.Key, resource string, sealed []byte, want string) {
	t.Helper()
	plain, err := key.Open(t.Context(), secret.Bound{Workspace: workspace, Resource: resource}, sealed)
	if err != nil || string(plain) != want {
		t.Errorf("got %q (%v), want %q", plain, err, want)
	}
}

func (f *fixture) get(t *testing.T, key table.Key) *table.Item {
	t.Helper()
	item, err := f.table.Get(t.Context(), key)
	check.Must(t, err)
	return item
}

// TestEveryTextIsSealedAnew has texts of three keys, several texts in one body, and one text
// that is a whole body.
func TestEveryTextIsSealedAnew(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	type body struct {
		Secrets     []byte   `json:"secrets"`
		Name        string   `json:"name"`
		Credentials []byte   `json:"credentials"`
		Scopes      []string `json:"scopes"`
	}
	at, credential := keys.Deployment(workspace, "d"), keys.GitCredential(workspace, "c")
	first := body{Secrets: f.seal(t, "d", "one"), Name: "weather <\"a\">", Scopes: []string{"AX", ""}}
	f.put(t, credential, "git_credential", f.seal(t, "c", "token"))
	_, err := keyfile.Rotate(f.file)
	check.Must(t, err)
	first.Credentials = f.seal(t, "d", "two")
	_, err = keyfile.Rotate(f.file)
	check.Must(t, err)
	f.put(t, at, "deployment", record.Encode(first))
	f.put(t, keys.Deployment(workspace, "e"), "deployment", record.Encode(body{Secrets: f.seal(t, "e", "newest")}))
	rewritten, err := reseal.Run(t.Context(), f.table, f.key)
	check.Must(t, err)
	if diff := cmp.Diff(map[string]int{"deployment": 1, "git_credential": 1}, rewritten); diff != "" {
		t.Errorf("rewritten (-want +got):\n%s", diff)
	}
	gone, err := keyfile.Retire(f.file, f.key.KeyID())
	check.Must(t, err)
	alone := fixtures.KeyAt(t, f.file)
	if gone != 2 || len(alone.Older()) != 0 {
		t.Errorf("%d keys went and %d older ones are left", gone, len(alone.Older()))
	}
	var after body
	item := f.get(t, at)
	r := record.Reader{Item: item}
	r.Decode(&after)
	check.Must(t, r.Err())
	f.opens(t, alone, "d", after.Secrets, "one")
	f.opens(t, alone, "d", after.Credentials, "two")
	f.opens(t, alone, "c", f.get(t, credential).Body, "token")
	if after.Name != first.Name || item.Int(record.Version) != 2 || item.Text(record.Updated) != item.Text(record.Created) {
		t.Errorf("got %+v, %v", after, item.Attrs)
	}
	if again, err := reseal.Run(t.Context(), f.table, f.key); err != nil || len(again) != 0 {
		t.Errorf("again: %v (%v)", again, err)
	}
}

// TestWhatIsUnknownIsRefused has a text in an item of a kind for which the binding is not
// known, and a text that is bound to something else than its item.
func TestWhatIsUnknownIsRefused(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"novelty": `of the kind "novelty" holds a text of an older key`, "deployment": "belongs to another resource"} {
		f := setUp(t)
		f.put(t, keys.Deployment(workspace, "d"), kind, record.Encode(map[string]any{"deep": []any{map[string][]byte{"sealed": f.seal(t, "other", "x")}}}))
		_, err := keyfile.Rotate(f.file)
		check.Must(t, err)
		f.seal(t, "d", "notices the key")
		if _, err := reseal.Run(t.Context(), f.table, f.key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// overtaken is a table whose items are changed by others right before they are rewritten.
type overtaken struct {
	*sqlite.Table
	rival func()
}

func (o *overtaken) Transact(ctx context.Context, writes ...table.Write) error {
	if rival := o.rival; rival != nil {
		o.rival = nil
		rival()
	}
	return o.Table.Transact(ctx, writes...)
}

// TestWhoChangesAnItemMeanwhileWins, also if the other process removes the item and creates it
// again, with the first version.
func TestWhoChangesAnItemMeanwhileWins(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	at := keys.GitCredential(workspace, "c")
	f.put(t, at, "git_credential", f.seal(t, "c", "before"))
	late := f.seal(t, "c", "meanwhile") // the text is still of the older key
	_, err := keyfile.Rotate(f.file)
	check.Must(t, err)
	f.seal(t, "c", "notices the key")
	rivals := &overtaken{Table: f.table, rival: func() {
		item := table.Item{Key: at, Attrs: record.Attrs("git_credential", now.Add(time.Second), nil), Body: late}
		check.Must(t, f.table.Transact(t.Context(), table.Put{Item: item}))
	}}
	rewritten, err := reseal.Run(t.Context(), rivals, f.key)
	check.Must(t, err)
	if rewritten["git_credential"] != 1 {
		t.Errorf("rewritten: %v", rewritten)
	}
	sealed := f.get(t, at).Body
	f.opens(t, f.key, "c", sealed, "meanwhile")
	if bytes.HasPrefix(sealed, f.key.Older()[0]) {
		t.Error("a text of the older key is left")
	}
}

// TestManyLostRaces has an item that another process changes again and again before it is
// rewritten.
func TestManyLostRaces(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	at := keys.GitCredential(workspace, "c")
	f.put(t, at, "git_credential", f.seal(t, "c", "text"))
	_, err := keyfile.Rotate(f.file)
	check.Must(t, err)
	f.seal(t, "c", "notices the key")
	rivals, wins := &overtaken{Table: f.table}, 0
	var rival func()
	rival = func() {
		check.Must(t, f.table.Transact(t.Context(), table.Update{Key: at, Add: map[string]int64{record.Version: 1}}))
		if wins++; wins < 21 {
			rivals.rival = rival
		}
	}
	rivals.rival = rival
	rewritten, err := reseal.Run(t.Context(), rivals, f.key)
	if err != nil || rewritten["git_credential"] != 1 {
		t.Errorf("rewritten: %v (%v) after %d lost races", rewritten, err, wins)
	}
}

// elsewhere are packages that seal texts which are not in the table of an installation, or
// pass on texts that other packages seal.
var elsewhere = []string{
	"host/agenthost", "host/stack", "jobs/reseal", "record/record", "seam/secret/envelope", "seam/secret/keyfile", "seam/secret/kms", "test/emulator/kms",
}

// TestWhoSealsSaysToWhat finds the packages that call Seal of a secret.Sealer: such a package
// must say in its Sealed what its texts are bound to.
func TestWhoSealsSaysToWhat(t *testing.T) {
	t.Parallel()
	seals, says := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		of, _ := filepath.Rel("../..", filepath.Dir(file))
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.CallExpr:
				// A secret.Sealer's Seal has three arguments, record.Seal has five, and the Seal of
				// a run has two.
				if called, ok := node.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Seal" && len(node.Args) > 2 {
					seals[filepath.ToSlash(of)] = true
				}
			case *ast.ValueSpec:
				if node.Names[0].Name == "Sealed" {
					says[filepath.ToSlash(of)] = true
				}
			}
			return true
		})
		return nil
	})
	check.Must(t, err)
	for of := range seals {
		if !says[of] && !slices.Contains(elsewhere, of) {
			t.Errorf("internal/%s seals, and has no Sealed that says to what", of)
		}
	}
	if len(seals) < 8 {
		t.Errorf("only %v seal", seals)
	}
}
