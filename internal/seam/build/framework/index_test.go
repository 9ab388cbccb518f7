package framework_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAnIndexOfTheStore(t *testing.T) {
	t.Parallel()
	read := func(store string) (framework.Config, error) {
		file := fmt.Sprintf(`{"graphs": {"a": "a.py:a"}, "dependencies": ["."], "store": %s}`, store)
		return framework.Read(tree(t, map[string]string{"framework.json": file, "a.py": "", "requirements.txt": ""}), "")
	}
	for store, want := range map[string]build.Index{
		`{"index": {"dims": 3, "embed": "./embed.py:embed", "fields": ["text", "of[*].name"]}}`: {Dims: 3, Embed: "./embed.py:embed"},
		`{"index": {"dims": 1536, "embed": "openai:text-embedding-3-small"}}`:                   {Dims: 1536, Embed: "openai:text-embedding-3-small"},
	} {
		config, err := read(store)
		check.Must(t, err)
		if diff := cmp.Diff(&want, config.Settings.Index); diff != "" {
			t.Errorf("%s (-want +got):\n%s", store, diff)
		}
	}
	for index, words := range map[string]string{
		`"x"`:                                          "- store.index: must be an object",
		`{"dims": 3}`:                                  "- store.index.embed: must be",
		`{"dims": 3, "embed": 1}`:                      "- store.index.embed: must be a string",
		`{"dims": 3, "embed": "embed"}`:                "- store.index.embed: must be",
		`{"dims": 3, "embed": "/e.py:e"}`:              "- store.index.embed: the path \"/e.py\" leaves the repository",
		`{"dims": 3, "embed": "../e.py:e"}`:            "- store.index.embed: the path \"../e.py\" leaves the repository",
		`{"embed": "x:y"}`:                             "- store.index.dims: must be the number of dimensions",
		`{"dims": 0, "embed": "x:y"}`:                  "- store.index.dims: must be the number of dimensions",
		`{"dims": 1.5, "embed": "x:y"}`:                "- store.index.dims: must be a whole number",
		`{"dims": 3, "embed": "x:y", "fields": "a"}`:   "- store.index.fields: must be a list of strings",
		`{"dims": 3, "embed": "x:y", "fields": [""]}`:  "- store.index.fields: a field must not be empty",
		`{"dims": 3, "embed": "x:y", "type": "exact"}`: "- store.index.type: is not a key of store.index",
	} {
		if _, err := read(`{"index": ` + index + `}`); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", index, err, words)
		}
	}
}

// TestAnIndexOfJavaScriptGraphs checks that a function in a file of the graphs' language, or a
// provider's model, embeds their items.
func TestAnIndexOfJavaScriptGraphs(t *testing.T) {
	t.Parallel()
	read := func(embed string) (framework.Config, error) {
		file := fmt.Sprintf(`{"graphs": {"a": "a.ts:a"}, "store": {"index": {"dims": 3, "embed": %q}}}`, embed)
		return framework.Read(tree(t, map[string]string{"framework.json": file, "a.ts": "", "package.json": "{}"}), "")
	}
	for _, embed := range []string{"./embed.ts:embed", "./embed.mjs:embed", "openai:text-embedding-3-small"} {
		config, err := read(embed)
		check.Must(t, err)
		if diff := cmp.Diff(&build.Index{Dims: 3, Embed: embed}, config.Settings.Index); diff != "" {
			t.Errorf("%s (-want +got):\n%s", embed, diff)
		}
	}
	if _, err := read("../embed.ts:embed"); err == nil || !strings.Contains(err.Error(), "leaves the repository") {
		t.Errorf("a file outside the repository: %v", err)
	}
}

// TestVectorsOfOtherModelsAreOfOtherSpaces checks that a change of the fields keeps the space.
func TestVectorsOfOtherModelsAreOfOtherSpaces(t *testing.T) {
	t.Parallel()
	spaces := map[string]build.Index{}
	for _, index := range []build.Index{{Embed: "a:b", Dims: 3}, {Embed: "a:b", Dims: 4}, {Embed: "a:c", Dims: 3}} {
		if other, taken := spaces[index.Space()]; taken {
			t.Errorf("%v and %v have the same space", index, other)
		}
		spaces[index.Space()] = index
	}
}
