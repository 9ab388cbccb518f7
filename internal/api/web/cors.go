package web

import (
	"cmp"
	"net/http"
	"regexp"
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

// Origins are the rules for pages of other origins, which call from browsers. A list that is nil
// leaves the choice to the server.
type Origins struct {
	// Allowed are the origins whose pages may call; AnyOrigin stands for all. Pattern matches
	// others, nil matches none.
	Allowed []string
	Pattern *regexp.Regexp
	// Methods and Headers are what pages may use; the lists may have "*". Without a list, methods
	// are those of the path, and headers those that the browser asks for.
	Methods, Headers []string
	// Exposed are the headers of answers that scripts may read beside those that they always may.
	Exposed []string
	// Credentials lets browsers send what they know of the server, such as cookies.
	Credentials bool
	// MaxAge is for how many seconds a browser need not ask again, "" for as long as browsers take.
	MaxAge string
}

// place are the rules of the paths below a prefix.
type place struct {
	prefix string
	rules  Origins
	// of are the rules of one path below the prefix, nil for those of all. Only preflights ask.
	of func(*http.Request) (*Origins, error)
}

// AllowOrigins lets pages of other origins call the paths below a prefix, from browsers. No cookies
// are involved: a page sends the key that it was given. Preflights are answered without
// authentication, as browsers send them without credentials. AnyOrigin stands for all.
func (m *Mux) AllowOrigins(prefix string, allowed ...string) {
	m.places = append(m.places, place{prefix: prefix, rules: Origins{Allowed: allowed}})
}

// AllowOriginsOf is AllowOrigins where some paths have rules of their own, which of says. What
// serves such a path sets the headers of its answers by Origins.Mark.
func (m *Mux) AllowOriginsOf(prefix string, of func(*http.Request) (*Origins, error), allowed ...string) {
	m.places = append(m.places, place{prefix: prefix, rules: Origins{Allowed: allowed}, of: of})
}

// crossOrigin sets the headers that a browser looks for. It reports whether the request was a
// preflight, which it has answered then.
func (m *Mux) crossOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
	i := slices.IndexFunc(m.places, func(p place) bool { return strings.HasPrefix(r.URL.Path, p.prefix) })
	if i < 0 {
		return false
	}
	rules := &m.places[i].rules
	if !IsPreflight(r) {
		rules.Mark(w.Header(), r)
		return false
	}
	if m.places[i].of != nil {
		own, err := m.places[i].of(r)
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

// IsPreflight tells whether a browser asks what a page may do.
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// admit says in the headers of an answer whether the page may read it.
func (o *Origins) admit(header http.Header, r *http.Request) bool {
	origin, all := r.Header.Get("Origin"), slices.Contains(o.Allowed, AnyOrigin)
	switch {
	case all && !o.Credentials:
		header.Set("Access-Control-Allow-Origin", AnyOrigin)
		return true
	case all && origin == "":
		return true
	}
	header.Add("Vary", "Origin") // also of answers to others, which a cache may hold
	if !all && !slices.Contains(o.Allowed, origin) && (o.Pattern == nil || origin == "" || !o.Pattern.MatchString(origin)) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	if o.Credentials {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
	return true
}

// Mark sets the headers of an answer that is no preflight's.
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

// permit says what an admitted page may do.
func (o *Origins) permit(header http.Header, r *http.Request, allowed []string) {
	if o.Methods != nil && !slices.Contains(o.Methods, "*") {
		allowed = o.Methods
	}
	header.Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
	wanted := r.Header.Get("Access-Control-Request-Headers")
	if o.Headers != nil && !slices.Contains(o.Headers, "*") {
		wanted = strings.Join(o.Headers, ", ")
	} else {
		header.Add("Vary", "Access-Control-Request-Headers")
	}
	if wanted != "" {
		header.Set("Access-Control-Allow-Headers", wanted)
	}
	header.Set("Access-Control-Max-Age", cmp.Or(o.MaxAge, preflightAge))
}

// Unmark removes what crossOrigin and Mark have set, for answers that bring rules of their own.
func Unmark(header http.Header) {
	for name := range header {
		if strings.HasPrefix(name, "Access-Control-") {
			header.Del(name)
		}
	}
}
