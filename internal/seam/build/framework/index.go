package framework

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// maxDims is the largest number of dimensions that a vector may have.
const maxDims = 16_000

// index reads how items of the store are embedded. The runtime reads the fields itself; here they
// are only checked.
func (p *parser) index(value json.RawMessage) *build.Index {
	const path = "store.index"
	index := &build.Index{}
	var texts []string
	if !p.objectIn(path, value, `{"embed": "openai:text-embedding-3-small", "dims": 1536, "fields": ["$"]}`, map[string]any{
		"embed": &index.Embed, "dims": &index.Dims, "fields": &texts,
	}) {
		return nil
	}
	if index.Dims < 1 || index.Dims > maxDims {
		p.problem("%s.dims: must be the number of dimensions of a vector, 1 to %d", path, maxDims)
	}
	if slices.Contains(texts, "") {
		p.problem("%s.fields: a field must not be empty", path)
	}
	if p.config.Language == "" {
		p.problem("%s: only the platform's runtimes embed items; a program with a start command has no such thing", path)
	}
	p.embed(index.Embed)
	return index
}

// embed checks that the name is a provider's model, or a variable in a file of the graphs'
// language in the repository.
func (p *parser) embed(name string) {
	at := strings.LastIndexByte(name, ':')
	switch file := name[:max(at, 0)]; {
	case file == "" || at == len(name)-1:
		p.problem(`store.index.embed: must be "path/to/file:function", or a provider and its model, as "openai:text-embedding-3-small"`)
	case suffixes[path.Ext(file)] == p.config.Language && p.leaves(file):
		p.problem("store.index.embed: the path %q leaves the repository", file)
	}
}
