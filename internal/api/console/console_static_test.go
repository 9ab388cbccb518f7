package console_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/test/check"
)

// schema is an object of the contract, as far as the console reads it.
type schema struct {
	Properties map[string]struct {
		Enum []string `json:"enum"`
	} `json:"properties"`
}

// read has, for each file, the names that the console uses for objects of the contract. A name
// that ends with a member stands for that member's own object.
var read = map[string]map[string]string{
	"workspace.js": {
		"k": "APIKey", "m": "Member", "s": "WorkspaceSecret", "l": "Listener", "w": "Webhook", "e": "AuditEntry", "d": "WebhookDelivery",
	},
	"deployments.js": {
		"d": "Deployment", "r": "Revision", "s": "Secret", "l": "LogEntry",
		"d.source_config": "SourceConfig", "d.source_revision_config": "SourceRevisionConfig", "r.source_revision_config": "SourceRevisionConfig",
	},
}

// TestThePageReadsMembersOfTheContract finds each member that the page reads of an object with
// a name of one letter, and each text with which it compares a member.
func TestThePageReadsMembersOfTheContract(t *testing.T) {
	t.Parallel()
	var contract struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	check.Must(t, json.Unmarshal(openapi.ControlPlane, &contract))
	member := regexp.MustCompile(`\b([a-z](?:\.source_config|\.source_revision_config)?)\??\.([a-z_]+)\b(?: === '(\w+)')?`)
	for file, names := range read {
		text, err := os.ReadFile(filepath.Join("static", file))
		check.Must(t, err)
		found := 0
		for _, at := range member.FindAllStringSubmatch(string(text), -1) {
			object, known := contract.Components.Schemas[names[at[1]]]
			if !known {
				continue
			}
			found++
			property, ok := object.Properties[at[2]]
			if !ok {
				t.Errorf("%s reads %s, and %s has no member %q", file, at[0], names[at[1]], at[2])
			}
			if at[3] != "" && len(property.Enum) > 0 && !slices.Contains(property.Enum, at[3]) {
				t.Errorf("%s compares %s, which is one of %q", file, at[0], property.Enum)
			}
		}
		if found < 20 {
			t.Errorf("only %d members were found in %s", found, file)
		}
	}
	for file, names := range read {
		for name, of := range names {
			if len(contract.Components.Schemas[of].Properties) == 0 {
				t.Errorf("%s: %s is not the name of an object of the contract (%s)", file, of, name)
			}
		}
	}
}

// TestTheVendoredFilesAreTheirRelease compares each vendored file with the checksum that
// VERSIONS has of it.
func TestTheVendoredFilesAreTheirRelease(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("static", "vendor")
	text, err := os.ReadFile(filepath.Join(dir, "VERSIONS"))
	check.Must(t, err)
	sums, versions := map[string]string{}, []string{}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "# package "); ok {
			versions = append(versions, strings.TrimSpace(name[strings.LastIndex(name, " "):]))
		}
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && !strings.HasPrefix(line, "#") {
			sums[file] = sum
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.js"))
	check.Must(t, err)
	if len(files) == 0 || len(files) != len(sums) || len(versions) == 0 {
		t.Errorf("there are the files %q, the sums %v and the versions %q", files, sums, versions)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		check.Must(t, err)
		for _, version := range versions {
			if !strings.Contains(string(body), `.push("`+version+`")`) {
				t.Errorf("%s does not say that it has the version %s", file, version)
			}
		}
		sum := sha256.Sum256(body)
		if got := hex.EncodeToString(sum[:]); got != sums[filepath.Base(file)] {
			t.Errorf("the sum of %s is %s, not what VERSIONS says", file, got)
		}
	}
}

// maxFirstLoad is how many bytes a browser may load before it shows the first page, compressed.
const maxFirstLoad = 150_000

// TestTheFirstLoadIsSmall compresses all files, each by itself as a proxy does: the page loads each
// module at once.
func TestTheFirstLoadIsSmall(t *testing.T) {
	t.Parallel()
	var compressed bytes.Buffer
	check.Must(t, filepath.WalkDir("static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		zipped := gzip.NewWriter(&compressed)
		_, err = zipped.Write(body)
		return errors.Join(err, zipped.Close())
	}))
	if size := compressed.Len(); size < 10_000 || size > maxFirstLoad {
		t.Errorf("the first load is %d bytes, want at most %d", size, maxFirstLoad)
	}
	t.Logf("the first load is %d bytes", compressed.Len())
}
