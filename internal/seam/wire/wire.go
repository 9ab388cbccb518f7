// Package wire is the protocol between an agent host and its clients: routes, long polls and
// errors.
//
// Bodies are the JSON of the types of packages compute and build. Both ends are programs of
// one version. The host refuses a member that it does not know, because the caller asks for
// something that it would not get.
package wire

import (
	"net/url"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Routes of a host. Path fills the parts in braces.
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
	// UploadsAll are the uploads of a deployment that is deleted.
	UploadsAll = UploadsOf + "/all"
)

// Wait is the query parameter that says how long the host may hold a request that has no final
// answer yet.
const Wait = "wait"

// MaxWait is the longest such time. It is short enough that proxies between client and host
// keep the connection.
const MaxWait = 20 * time.Second

// Relapsed is the answer to the request that asks whether a release has relapsed. Reason is ""
// while it has not.
type Relapsed struct {
	Reason string `json:"reason"`
}

// End reports the end of an agent that had been healthy, or that cannot be started.
type End struct {
	Number int64
	compute.Ref

	Status compute.Status
}

// AckEnds is the request for ends. It acknowledges all ends up to Number, and the host forgets
// them.
type AckEnds struct {
	Number int64
}

// Upload is the request for a grant. Base is the address at which its client reaches the host.
type Upload struct {
	upload.Ref

	Base string
}

// LogPage is a part of a log. NoPosition says that the log has no such position as the request
// names.
type LogPage struct {
	revisionlog.Page

	NoPosition bool
}

// Problem is the body of an error answer.
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
