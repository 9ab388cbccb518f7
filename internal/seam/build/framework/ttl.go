package framework

import (
	"encoding/json"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// maxTTL is the longest time to live in minutes, a hundred years.
const maxTTL = 100 * 365 * 24 * 60

// noStore is the reason why a store of the repository's own is refused.
const noStore = "the platform keeps all items itself, and a graph reads them as from any store: remove the key, and give the present items to the platform with PUT /store/items. What must stay in a database of your own, a node reads and writes with a store that the graph's module opens itself; /store/items does not show it"

// ownSweeps is the remark about settings of how the server looks for expired threads and
// items.
const ownSweeps = "the platform looks for what has expired by itself, each minute, however often that is"

// ttls reads how long threads and items live.
func (p *parser) ttls() {
	backend := "default"
	var threads, items, index json.RawMessage
	if p.object("checkpointer", `{"ttl": {"default_ttl": 43200}}`, map[string]any{
		"ttl": &threads, "backend": &backend, "path": publicname.NoCheckpointer, "uri": publicname.NoCheckpointer,
		"serde": "the runtime reads what the repository's own release of the framework does; its types cannot be chosen: remove it",
	}) {
		if backend != "default" {
			p.problem("checkpointer.backend: %s", publicname.NoCheckpointer)
		}
		p.config.Settings.Threads = p.threadTTL(threads)
	}
	if p.object("store", `{"ttl": {"default_ttl": 10080}}`, map[string]any{"ttl": &items, "index": &index, "path": noStore}) {
		p.config.Settings.Items = p.itemTTL(items)
		p.config.Settings.Index = p.index(index)
	}
}

func (p *parser) threadTTL(value json.RawMessage) *build.ThreadTTL {
	const path = "checkpointer.ttl"
	ttl := &build.ThreadTTL{Strategy: "delete"}
	var limit *float64
	minutes := p.ttl(path, value, `{"strategy": "delete", "default_ttl": 43200}`, map[string]any{"strategy": &ttl.Strategy, "sweep_limit": &limit})
	if ttl.Strategy != "delete" && ttl.Strategy != "keep_latest" {
		p.problem(`%s.strategy: must be "delete" or "keep_latest"`, path)
	}
	if minutes != nil {
		ttl.Minutes = *minutes
	}
	if limit != nil {
		p.remark(path+".sweep_limit", ownSweeps)
	}
	return ttl
}

func (p *parser) itemTTL(value json.RawMessage) *build.ItemTTL {
	refresh := true
	minutes := p.ttl("store.ttl", value, `{"refresh_on_read": true, "default_ttl": 10080}`, map[string]any{"refresh_on_read": &refresh})
	return &build.ItemTTL{Minutes: minutes, Still: !refresh}
}

// ttl reads default_ttl, nil if it is not set, and further members of a TTL.
func (p *parser) ttl(path string, value json.RawMessage, example string, members map[string]any) (minutes *float64) {
	var interval *float64
	members["default_ttl"], members["sweep_interval_minutes"] = &minutes, &interval
	p.objectIn(path, value, example, members)
	if minutes != nil && (*minutes <= 0 || *minutes > maxTTL) {
		p.problem("%s.default_ttl: must be more than 0 and at most %d minutes", path, maxTTL)
	}
	if interval != nil {
		p.remark(path+".sweep_interval_minutes", ownSweeps)
	}
	return minutes
}
