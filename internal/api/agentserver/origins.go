package agentserver

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/base/pattern"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// preflight finds the rules of the deployment that the path of a preflight names; nil if the
// deployment has no rules of its own. A preflight comes without credentials.
func (s server) preflight(r *http.Request) (*web.Origins, error) {
	named, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/d/"), "/")
	deploymentID := strings.ToLower(named)
	if !isID(deploymentID) {
		return nil, nil
	}
	d, err := s.Deployments.HeadWithID(r.Context(), deploymentID)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return originsOf(d.Settings.HTTP), err
}

// originsOf are the rules for pages of other origins that call a deployment.
func (s server) originsOf(d deployment.Deployment) *web.Origins {
	return cmp.Or(originsOf(d.Settings.HTTP), &web.Origins{Allowed: s.Origins})
}

// originsOf are the rules that a configuration file has, nil if it has none.
func originsOf(settings *build.HTTP) *web.Origins {
	if settings == nil || settings.CORS == nil {
		return nil
	}
	c := settings.CORS
	rules := &web.Origins{Allowed: c.Origins, Methods: c.Methods, Headers: c.Headers, Exposed: c.Exposed, Credentials: c.Credentials}
	if c.MaxAge != nil {
		rules.MaxAge = strconv.Itoa(*c.MaxAge)
	}
	if c.OriginPattern != "" {
		rules.Pattern = originPattern(c.OriginPattern)
	}
	return rules
}

// originCache holds the compiled patterns of origins, by their text, as each request of a page
// would take 0.1 ms and 20 KB to compile one (BenchmarkCompileWhole). Their sizes add up to at most
// 100,000 steps, which take some 10 MB.
var originCache = lru.New[string, *pattern.Pattern](100_000)

// originPattern compiles the pattern of origins in a configuration file. The build has refused
// the patterns that cannot be used, but an older server's build has refused fewer: such a pattern
// is nil, which matches nothing.
func originPattern(text string) *pattern.Pattern {
	compiled, known := originCache.Get(text)
	if !known {
		compiled, _ = pattern.CompileWhole(text)
		originCache.Put(text, compiled, max(compiled.Size(), 1))
	}
	return compiled
}

// markOrigin marks an answer by the deployment's own rules, if it has rules.
func (s server) markOrigin(w http.ResponseWriter, r *http.Request, d deployment.Deployment) {
	if rules := originsOf(d.Settings.HTTP); rules != nil && !web.IsPreflight(r) {
		web.Unmark(w.Header())
		rules.Mark(w.Header(), r)
	}
}
