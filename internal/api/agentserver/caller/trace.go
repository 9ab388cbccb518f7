package caller

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// headerBaggage holds named values that concern a trace (W3C Baggage).
const headerBaggage = "baggage"

// traceOf returns the place in a trace at which the client sees a run: the trace's id has a header
// of its own, all other values are in the baggage. The configuration file can hide each of the two
// headers. Values of other tracing services, and values that cannot be read, are left out.
func traceOf(header http.Header, settings *build.HTTP) map[string]json.RawMessage {
	isHidden := func(name string) bool {
		shown, said := settings.Header(name)
		return said && !shown
	}
	trace := map[string]json.RawMessage{}
	id := publicname.Tracing("trace")
	if value := header.Get(id); value != "" && !isHidden(id) {
		trace[id] = record.Encode(value)
	}
	if isHidden(headerBaggage) {
		return trace
	}
	for item := range strings.SplitSeq(strings.Join(header.Values(headerBaggage), ","), ",") {
		item, _, _ = strings.Cut(item, ";") // which begins the properties of the value
		name, quoted, _ := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		text, err := url.PathUnescape(strings.TrimSpace(quoted))
		if err != nil || text == "" {
			continue
		}
		switch name {
		case publicname.Tracing("project"):
			trace[name] = record.Encode(text)
		case publicname.Tracing("tags"):
			trace[name] = record.Encode(strings.Split(text, ","))
		case publicname.Tracing("metadata"):
			if metadata := json.RawMessage(text); state.IsObject(metadata) && json.Valid(metadata) && web.CheckReadable(metadata) == nil {
				trace[name] = metadata
			}
		}
	}
	return trace
}
