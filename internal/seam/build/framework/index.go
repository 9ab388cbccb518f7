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

var indexKeys = map[string]string{"dims": "", "embed": "", "fields": ""}

// index reads how items of the store are embedded. The runtime reads the fields itself; here they
// are only checked.
func (p *parser) index(store map[string]json.RawMessage) *build.Index {
	const path = "store.index"
	fields := p.objectIn(store, "index", path, `{"embed": "openai:text-embedding-3-small", "dims": 1536, "fields": ["$"]}`, indexKeys)
	if fields == nil {
		return nil
	}
	asked := &build.Index{}
	var dims *int
	var texts []string
	p.member(fields, path, "embed", &asked.Embed)
	p.member(fields, path, "dims", &dims)
	p.member(fields, path, "fields", &texts)
	if dims == nil || *dims < 1 || *dims > maxDims {
		p.problem("%s.dims: must be the number of dimensions of a vector, 1 to %d", path, maxDims)
	} else {
		asked.Dims = *dims
	}
	if slices.Contains(texts, "") {
		p.problem("%s.fields: a field must not be empty", path)
	}
	if p.config.Language == "" {
		p.problem("%s: only the platform's runtimes embed items; a program with a start command has no such thing", path)
	}
	p.embed(asked.Embed)
	return asked
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
