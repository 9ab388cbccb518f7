// Package registrytest is the conformance suite of package registry.
package registrytest

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/test/check"
)

// World is a registry under test, with the actions of clients and of time on it.
type World struct {
	registry.Registry
	// Push pushes a new image, with a grant and under a tag, and returns its digest.
	Push func(t *testing.T, grant registry.Grant, tag string) (digest string)
	// Has reports whether a repository has an image of a digest.
	Has func(t *testing.T, ref registry.Ref, digest string) bool
	// Age makes everything that has been pushed until now so old that it may be removed.
	Age func(t *testing.T)
}

// Run proves that the registries that open makes keep the promises of package registry.
func Run(t *testing.T, open func(t *testing.T) World) {
	for name, promise := range map[string]func(fixture){
		"each deployment has a repository of its own":              ownRepositories,
		"what is pushed is there by its digest":                    pushed,
		"a second grant is for the same repository":                pushedAgain,
		"images that are not kept are removed":                     kept,
		"an image that two tags had is kept for one":               keptByTag,
		"what has just been pushed stays":                          justPushed,
		"keeping nothing of what is not there does nothing":        keptNowhere,
		"a repository is erased with its images, others are not":   erased,
		"a repository that was erased can be had again":            erasedAndMade,
		"erasing what is not there, or was erased, does nothing":   erasedTwice,
		"erasing one deployment's leaves that of its workspace be": erasedNextDoor,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(fixture{t, open(t)})
		})
	}
}

type fixture struct {
	*testing.T
	w World
}

// NewRef returns a deployment of a workspace, both new.
func NewRef() registry.Ref {
	return registry.Ref{Workspace: id.New(time.Now()), Deployment: id.New(time.Now())}
}

func (f fixture) must(err error) {
	f.Helper()
	check.Must(f.T, err)
}

func (f fixture) grant(ref registry.Ref) registry.Grant {
	f.Helper()
	grant, err := f.w.Registry.Push(f.Context(), ref)
	f.must(err)
	return grant
}

// push pushes an image to a deployment's repository.
func (f fixture) push(ref registry.Ref, tag string) (digest string) {
	f.Helper()
	return f.w.Push(f.T, f.grant(ref), tag)
}

func (f fixture) name(ref registry.Ref, suffix string) string {
	f.Helper()
	repository, err := f.w.Repository(f.Context(), ref)
	f.must(err)
	return repository + suffix
}

func (f fixture) keep(ref registry.Ref, images ...string) {
	f.Helper()
	f.must(f.w.Keep(f.Context(), ref, images))
}

func (f fixture) erase(ref registry.Ref) {
	f.Helper()
	f.must(f.w.Erase(f.Context(), ref.Workspace, ref.Deployment))
}

func (f fixture) want(ref registry.Ref, digest string, want bool) {
	f.Helper()
	if got := f.w.Has(f.T, ref, digest); got != want {
		f.Errorf("image %s is there: %t, want %t", digest, got, want)
	}
}

func ownRepositories(f fixture) {
	ref := NewRef()
	neighbour := registry.Ref{Workspace: ref.Workspace, Deployment: NewRef().Deployment}
	foreign := registry.Ref{Workspace: NewRef().Workspace, Deployment: ref.Deployment}
	own := f.name(ref, "")
	if own != f.name(ref, "") {
		f.Error("its name changes")
	}
	for _, other := range []registry.Ref{neighbour, foreign} {
		if name := f.name(other, ""); strings.HasPrefix(name+"/", own+"/") || strings.HasPrefix(own+"/", name+"/") {
			f.Errorf("%s is not apart from %s", name, own)
		}
	}
	grant := f.grant(ref)
	if grant.Repository != own || grant.Username == "" || grant.Token == "" || grant.Host() == "" || !strings.HasPrefix(own, grant.Host()+"/") {
		f.Errorf("the grant for %s is %+v", own, grant)
	}
}

func pushed(f fixture) {
	ref, other := NewRef(), NewRef()
	first, second := f.push(ref, "v1"), f.push(ref, "v2")
	f.grant(other)
	f.want(ref, first, true)
	f.want(ref, second, true)
	f.want(other, first, false)
}

func pushedAgain(f fixture) {
	ref := NewRef()
	first := f.push(ref, "latest")
	second := f.push(ref, "latest")
	f.want(ref, first, true)
	f.want(ref, second, true)
	f.keep(ref)
}

func kept(f fixture) {
	ref, other := NewRef(), NewRef()
	first, second, third := f.push(ref, "v1"), f.push(ref, "v2"), f.push(ref, "v3")
	foreign := f.push(other, "v1")
	f.w.Age(f.T)
	f.keep(ref, f.name(ref, "@"+second), f.name(ref, ":v3"), f.name(ref, ":gone"), f.name(ref, "@sha256:"+strings.Repeat("0", 64)))
	f.want(ref, first, false)
	f.want(ref, second, true)
	f.want(ref, third, true)
	f.want(other, foreign, true)
	f.w.Age(f.T)
	f.keep(ref)
	f.want(ref, second, false)
	f.want(ref, third, false)
}

func keptByTag(f fixture) {
	ref := NewRef()
	before, after := f.push(ref, "latest"), f.push(ref, "latest")
	f.w.Age(f.T)
	f.keep(ref, f.name(ref, ":latest"))
	f.want(ref, before, false)
	f.want(ref, after, true)
}

func justPushed(f fixture) {
	ref := NewRef()
	before := f.push(ref, "v1")
	f.w.Age(f.T)
	after := f.push(ref, "v2")
	f.keep(ref)
	f.want(ref, before, false)
	f.want(ref, after, true)
}

func keptNowhere(f fixture) {
	ref := NewRef()
	f.keep(ref)
	f.keep(ref, f.name(ref, ":v1"))
}

func erased(f fixture) {
	ref, other := NewRef(), NewRef()
	own, foreign := f.push(ref, "v1"), f.push(other, "v1")
	f.erase(ref)
	f.grant(ref)
	f.want(ref, own, false)
	f.want(other, foreign, true)
}

func erasedAndMade(f fixture) {
	ref := NewRef()
	f.push(ref, "v1")
	f.erase(ref)
	f.want(ref, f.push(ref, "v1"), true)
}

func erasedTwice(f fixture) {
	ref := NewRef()
	f.erase(ref)
	f.push(ref, "v1")
	f.erase(ref)
	f.erase(ref)
}

func erasedNextDoor(f fixture) {
	ref := NewRef()
	neighbour := registry.Ref{Workspace: ref.Workspace, Deployment: NewRef().Deployment}
	f.push(ref, "v1")
	there := f.push(neighbour, "v1")
	f.erase(ref)
	f.want(neighbour, there, true)
}
