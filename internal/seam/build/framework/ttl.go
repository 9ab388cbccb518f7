package framework

import (
	"encoding/json"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// maxTTL is the longest time to live in minutes, a hundred years.
const maxTTL = 100 * 365 * 24 * 60

var (
	checkpointerKeys = map[string]string{
		"ttl":     "",
		"backend": "",
		"path":    publicname.NoCheckpointer,
		"serde":   "the runtime reads what the repository's own release of the framework does; its types cannot be chosen",
	}
	storeKeys = map[string]string{
		"ttl":   "",
		"index": "",
		"path":  "the platform keeps all items itself, and a graph reads them as from any store: remove the key, and give the present items to the platform with PUT /store/items. What must stay in a database of your own, a node reads and writes with a store that the graph's module opens itself; /store/items does not show it",
	}
	threadTTLKeys = map[string]string{"strategy": "", "default_ttl": "", "sweep_interval_minutes": "", "sweep_limit": ""}
	itemTTLKeys   = map[string]string{"refresh_on_read": "", "default_ttl": "", "sweep_interval_minutes": ""}
)

// ownSweeps is the remark about settings of how the server looks for expired threads and
// items.
const ownSweeps = "the platform looks for what has expired by itself, each minute, however often that is"

// ttls reads how long threads and items live.
func (p *parser) ttls() {
	if fields := p.object("checkpointer", `{"ttl": {"default_ttl": 43200}}`, checkpointerKeys); fields != nil {
		p.backend(fields)
		p.config.Settings.Threads = p.threadTTL(fields)
	}
	if fields := p.object("store", `{"ttl": {"default_ttl": 10080}}`, storeKeys); fields != nil {
		p.config.Settings.Items = p.itemTTL(fields)
		p.config.Settings.Index = p.index(fields)
	}
}

// backend refuses each place of the checkpoints but the platform's own.
func (p *parser) backend(checkpointer map[string]json.RawMessage) {
	backend := "default"
	if p.member(checkpointer, "checkpointer", "backend", &backend); backend != "default" {
		p.problem("checkpointer.backend: %s", publicname.NoCheckpointer)
	}
}

func (p *parser) threadTTL(checkpointer map[string]json.RawMessage) *build.ThreadTTL {
	const path = "checkpointer.ttl"
	asked := &build.ThreadTTL{Strategy: "delete"}
	fields := p.objectIn(checkpointer, "ttl", path, `{"strategy": "delete", "default_ttl": 43200}`, threadTTLKeys)
	p.member(fields, path, "strategy", &asked.Strategy)
	if asked.Strategy != "delete" && asked.Strategy != "keep_latest" {
		p.problem(`%s.strategy: must be "delete" or "keep_latest"`, path)
	}
	if minutes := p.minutes(fields, path); minutes != nil {
		asked.Minutes = *minutes
	}
	return asked
}

func (p *parser) itemTTL(store map[string]json.RawMessage) *build.ItemTTL {
	const path = "store.ttl"
	fields := p.objectIn(store, "ttl", path, `{"refresh_on_read": true, "default_ttl": 10080}`, itemTTLKeys)
	refresh := true
	p.member(fields, path, "refresh_on_read", &refresh)
	return &build.ItemTTL{Minutes: p.minutes(fields, path), Still: !refresh}
}

// minutes reads default_ttl, nil if it is not set, and adds remarks about the settings of the
// sweeps.
func (p *parser) minutes(fields map[string]json.RawMessage, path string) *float64 {
	var minutes, sweep *float64
	p.member(fields, path, "default_ttl", &minutes)
	if minutes != nil && (*minutes <= 0 || *minutes > maxTTL) {
		p.problem("%s.default_ttl: must be more than 0 and at most %d minutes", path, maxTTL)
	}
	for _, name := range []string{"sweep_interval_minutes", "sweep_limit"} {
		if p.member(fields, path, name, &sweep); asks(fields[name]) {
			p.remark(path+"."+name, ownSweeps)
		}
	}
	return minutes
}
