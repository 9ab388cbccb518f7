package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/pattern"
)

// exposed are the headers of answers that scripts of other origins may read, besides the
// headers that such scripts may always read.
const exposed = "Content-Location, ETag, Location, Retry-After, Warning, X-Pagination-Next, X-Pagination-Total, X-Request-Id"

// preflightAge is the number of seconds for which a browser need not ask again; no browser
// keeps an answer for longer than two hours.
const preflightAge = "7200"

// maxOrigin is the longest origin that a pattern is matched with, in bytes: a scheme, the longest
// name of a host (253 bytes) and a port.
const maxOrigin = 275

// AnyOrigin lets pages of all origins in.
const AnyOrigin = "*"

// Origins are the rules for pages of other origins, which call from browsers. If a list is nil,
// the server chooses.
type Origins struct {
	// Allowed are the origins whose pages may call; AnyOrigin stands for all. Pattern matches
	// further origins; a nil Pattern matches no origin.
	Allowed []string
	Pattern *pattern.Pattern
	// Methods and Headers are what pages may use; the lists may contain "*". Without a list,
	// the methods are the methods of the path, and the headers are the headers that the browser
	// asks for. Pages may always send JSON.
	Methods, Headers []string
	// Exposed are the headers of answers that scripts may read besides those that they always
	// may.
	Exposed []string
	// Credentials lets browsers send the credentials that they hold for the server, such as
	// cookies.
	Credentials bool
	// MaxAge is the number of seconds for which a browser need not ask again; "" leaves it to
	// the browser.
	MaxAge string
}

// pathRules are the rules of the paths below a prefix.
type pathRules struct {
	prefix string
	rules  Origins
	// of returns the rules of one path below the prefix, nil for a path that has the common
	// rules. Only preflights call it.
	of func(*http.Request) (*Origins, error)
}

// AllowOrigins lets pages of other origins call the paths below a prefix, from browsers. No
// cookies are involved: a page sends the key that it was given. Preflights are answered without
// authentication because browsers send them without credentials. AnyOrigin stands for all
// origins. Some paths below the prefix may have rules of their own, which of returns (nil if no
// path has any). The handler of such a path sets the headers of its answers with Origins.Mark.
func (m *Mux) AllowOrigins(prefix string, of func(*http.Request) (*Origins, error), allowed ...string) {
	m.origins = append(m.origins, pathRules{prefix: prefix, rules: Origins{Allowed: allowed}, of: of})
}

// crossOrigin sets the headers that a browser looks for. It reports whether it has answered the
// request, which it does for preflights only.
func (m *Mux) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	i := slices.IndexFunc(m.origins, func(p pathRules) bool { return strings.HasPrefix(r.URL.Path, p.prefix) })
	if i < 0 {
		return false
	}
	rules := &m.origins[i].rules
	if !IsPreflight(r) {
		rules.Mark(w.Header(), r)
		return false
	}
	if m.origins[i].of != nil {
		own, err := m.origins[i].of(r)
		if err != nil {
			m.Error(w, r, err)
			return true
		}
		if own != nil {
			rules = own
		}
	}
	allowed := m.Allowed(r)
	if !rules.admit(w.Header(), r) || len(allowed) == 0 {
		return false
	}
	rules.permit(w.Header(), r, allowed)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// IsPreflight reports whether a browser asks which calls a page may make.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// admit states in the headers of an answer whether the page may read it.
func (o *Origins) admit(header http.Header, r *http.Request) bool {
	origin, all := r.Header.Get("Origin"), slices.Contains(o.Allowed, AnyOrigin)
	switch {
	case all && !o.Credentials:
		header.Set("Access-Control-Allow-Origin", AnyOrigin)
		return true
	case all && origin == "":
		return true
	}
	vary(header, "Origin") // also in answers to other origins, because a cache may hold them
	if !o.letsIn(origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	if o.Credentials {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
	return true
}

// letsIn reports whether pages of an origin may call.
func (o *Origins) letsIn(origin string) bool {
	return slices.Contains(o.Allowed, AnyOrigin) || slices.Contains(o.Allowed, origin) ||
		(origin != "" && len(origin) <= maxOrigin && o.Pattern.Matches(origin))
}

// Mark sets the headers of an answer to a request that is not a preflight.
func (o *Origins) Mark(header http.Header, r *http.Request) {
	if o.admit(header, r) {
		header.Set("Access-Control-Expose-Headers", strings.Join(append([]string{exposed}, o.Exposed...), ", "))
	}
}

// Preflight sets the headers of the answer to a preflight, and reports whether the page may call.
// allowed are the methods that the path has.
func (o *Origins) Preflight(header http.Header, r *http.Request, allowed []string) bool {
	admitted := o.admit(header, r)
	if admitted {
		o.permit(header, r, allowed)
	}
	return admitted
}

// permit states in the headers which methods and headers an admitted page may use.
func (o *Origins) permit(header http.Header, r *http.Request, allowed []string) {
	if o.Methods != nil && !slices.Contains(o.Methods, "*") {
		allowed = o.Methods
	}
	header.Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
	wanted := r.Header.Get("Access-Control-Request-Headers")
	if o.Headers != nil && !slices.Contains(o.Headers, "*") {
		wanted = strings.Join(append([]string{"Content-Type"}, o.Headers...), ", ")
	} else {
		vary(header, "Access-Control-Request-Headers")
	}
	if wanted != "" {
		header.Set("Access-Control-Allow-Headers", wanted)
	}
	header.Set("Access-Control-Max-Age", cmp.Or(o.MaxAge, preflightAge))
}

// vary states that an answer depends on a header of the request, if the answer does not state it
// already.
func vary(header http.Header, name string) {
	if !varies(header, name) {
		header.Add("Vary", name)
	}
}

// varies reports whether an answer states that it depends on a header of the request.
func varies(header http.Header, name string) bool {
	return slices.ContainsFunc(header.Values("Vary"), func(value string) bool {
		return slices.ContainsFunc(strings.Split(value, ","), func(one string) bool { return strings.EqualFold(strings.TrimSpace(one), name) })
	})
}

// VaryOnce removes from the headers that Mark and Preflight have set what the answer of an
// application states itself: that it depends on the origin.
func VaryOnce(header, answer http.Header) {
	if varies(answer, "Origin") {
		header["Vary"] = slices.DeleteFunc(header.Values("Vary"), func(value string) bool { return value == "Origin" })
	}
}

// Unmark removes the headers that crossOrigin and Mark have set, for answers that bring rules
// of their own.
func Unmark(header http.Header) {
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			header.Del(name)
		}
	}
}
