package web

import (
	"net/http"
	"slices"
	"strings"
)

// exposed are the headers of answers that scripts of other origins may read, beside those that they
// always may.
const exposed = "Content-Location, ETag, Location, Retry-After, Warning, X-Pagination-Next, X-Pagination-Total, X-Request-Id"

// preflightAge is for how many seconds a browser need not ask again; none keeps an answer for
// longer than two hours.
const preflightAge = "7200"

// AnyOrigin lets pages of all origins in.
const AnyOrigin = "*"

// origins are whose pages may call the paths below a prefix.
type origins struct {
	prefix  string
	allowed []string
}

// AllowOrigins lets pages of other origins call the paths below a prefix, from browsers. No cookies
// are involved: a page sends the key that it was given. Preflights are answered without
// authentication, as browsers send them without credentials. AnyOrigin stands for all.
func (m *Mux) AllowOrigins(prefix string, allowed ...string) {
	m.origins = append(m.origins, origins{prefix, allowed})
}

// crossOrigin sets the headers that a browser looks for. It reports whether the request was a
// preflight, which it has answered then.
func (m *Mux) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	i := slices.IndexFunc(m.origins, func(o origins) bool { return strings.HasPrefix(r.URL.Path, o.prefix) })
	if i < 0 {
		return false
	}
	header, origin := w.Header(), r.Header.Get("Origin")
	if slices.Contains(m.origins[i].allowed, AnyOrigin) {
		header.Set("Access-Control-Allow-Origin", AnyOrigin)
	} else {
		header.Add("Vary", "Origin") // also of answers to others, which a cache may hold
		if !slices.Contains(m.origins[i].allowed, origin) {
			return false
		}
		header.Set("Access-Control-Allow-Origin", origin)
	}
	if origin == "" || r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		header.Set("Access-Control-Expose-Headers", exposed)
		return false
	}
	allowed := m.allowed(r)
	if len(allowed) == 0 {
		return false
	}
	header.Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
	if wanted := r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
		header.Set("Access-Control-Allow-Headers", wanted)
		header.Add("Vary", "Access-Control-Request-Headers")
	}
	header.Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}
