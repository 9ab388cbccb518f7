// Package wire is what an agent host and its clients agree on: routes, long polls and errors.
//
// Bodies are the JSON of the types of packages compute and build. Both ends are programs of one
// version; a member that the host does not know is refused, as it is something that the caller asks
// for in vain.
package wire

import (
	"net/url"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Routes of a host. The parts in braces are filled by Path.
const (
	Releases = "/releases"
	Release  = "/releases/{workspace}/{deployment}/{revision}"
	Restart  = "/releases/{workspace}/{deployment}/{revision}/restarts/{restart}"
	Relapse  = "/releases/{workspace}/{deployment}/{revision}/relapse"
	Agent    = "/agents/{workspace}/{deployment}/{revision}"
	Ends     = "/ends"
	Builds   = "/builds"
	Build    = "/builds/{revision}"

	Log        = "/logs/{revision}/{kind}"
	LogChanges = "/logs/{revision}/{kind}/changes"
	LogLines   = "/logs/{revision}/{kind}/lines"

	Uploads   = "/uploads"
	UploadsOf = "/uploads/{workspace}/{deployment}"
)

// Wait is the query parameter that says how long the host may keep a question that has no final
// answer yet.
const Wait = "wait"

// MaxWait is the longest such time: short enough for what stands between the two to keep the
// connection.
const MaxWait = 20 * time.Second

// Relapsed is the answer to the question whether a release has relapsed; Reason is "" while it has
// not.
type Relapsed struct {
	Reason string `json:"reason"`
}

// End is that of an agent that had been healthy, or that cannot be started.
type End struct {
	Number int64
	compute.Ref

	Status compute.Status
}

// Told is the question for ends: all up to Number have been told, and are to be forgotten.
type Told struct {
	Number int64
}

// Upload is the question for a grant. Base is the address that its client has of the host.
type Upload struct {
	upload.Ref

	Base string
}

// LogPage is a part of a log; NoPosition says that there is no such position in it as was asked
// for.
type LogPage struct {
	revisionlog.Page

	NoPosition bool
}

// Problem is the body of an answer that is an error.
type Problem struct {
	Detail string `json:"detail"`
}

// Path fills the parts in braces of a route, in their order.
func Path(route string, values ...string) string {
	var path strings.Builder
	for _, value := range values {
		before, rest, _ := strings.Cut(route, "{")
		_, route, _ = strings.Cut(rest, "}")
		path.WriteString(before + url.PathEscape(value))
	}
	return path.String() + route
}
