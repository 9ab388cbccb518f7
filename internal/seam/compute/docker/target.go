package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sync/singleflight"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
)

// Config holds the values that a Target needs.
type Config struct {
	// Dir holds the name under which the engine knows this server's containers, and notes of the
	// images that registries have given to workspaces.
	Dir string
	// Host is the engine's address. "" takes the address from DOCKER_HOST and its companions,
	// or else the engine's usual address.
	Host string
	// Logs get the containers' output. Log gets the target's own messages.
	Logs *files.Logs
	Log  *slog.Logger
	replica.Limits
	// EngineLimit is how long a release waits for an engine that does not answer (10 s).
	EngineLimit time.Duration
	// Login returns the registry host and the credentials by which the images of a release are
	// pulled if its clients have pushed them to the server's own registry. nil means that the
	// server has no registry.
	Login func(ctx context.Context, ref compute.Ref) (host, username, password string, err error)
	// CheckRegistry returns why no image may be pulled from a registry, by its host. The
	// engine connects from its own machine, so otherwise tenants would reach addresses that
	// only that machine reaches. nil permits all.
	CheckRegistry func(ctx context.Context, host string) error
	// Alarm and Try may be nil.
	Alarm compute.Alarm
	Try   replica.Try
}

// Target implements compute.Target as replica.Target does.
type Target struct {
	*replica.Target
	engine *engine
}

// engine is the replica.Host of containers.
type engine struct {
	cfg    Config
	client *client.Client
	// server is the value of labelServer on everything that this target has made.
	server string
	// meetings join the callers that wait for the engine. closing ends when the target leaves
	// the engine; close ends it.
	meetings singleflight.Group
	closing  context.Context
	close    context.CancelFunc
	// noting guards the notes of images and the removal of images.
	noting sync.Mutex

	mu sync.Mutex
	// size is the engine's size. It is nil until the engine has answered and the remains of an
	// earlier server were removed.
	size *size
	// left is what replicas could not remove, because the engine did not answer.
	left remains
}

// New returns a target. The engine need not run yet.
func New(cfg Config) (*Target, error) {
	cfg.Limits, cfg.EngineLimit = cfg.OrDefaults(), cmp.Or(cfg.EngineLimit, 10*time.Second)
	options := []client.Opt{client.FromEnv}
	if cfg.Host != "" {
		options = append(options, client.WithHost(cfg.Host))
	}
	api, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("open docker target: %w", err)
	}
	e := &engine{cfg: cfg, client: api}
	e.closing, e.close = context.WithCancel(context.Background())
	if err := e.remember(); err != nil {
		e.close()
		return nil, errors.Join(fmt.Errorf("open docker target: %w", err), api.Close())
	}
	return &Target{replica.New(e, cfg.Limits, cfg.Alarm, cfg.Log, nil, cfg.Try), e}, nil
}

// remember reads the server's name. A server that has a name from an earlier start may have
// left containers at the engine. They are removed now if the engine answers, and otherwise
// when it first answers. A new name is written only when the engine is first used.
func (e *engine) remember() error {
	text, err := os.ReadFile(e.nameFile())
	if errors.Is(err, os.ErrNotExist) {
		e.server = id.New(time.Now())
		return nil
	}
	if err != nil {
		return err
	}
	if e.server = strings.TrimSpace(string(text)); !id.Valid(e.server) {
		return fmt.Errorf("%s holds no id", e.nameFile())
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	if err := e.sweepAll(ctx); err != nil {
		e.cfg.Log.Warn("containers of an earlier start cannot be looked for yet", "error", err)
	}
	return nil
}

func (e *engine) nameFile() string { return filepath.Join(e.cfg.Dir, "server") }

// keepName writes the server's name to a file, so that the next start finds the server's
// containers.
func (e *engine) keepName() error {
	if kept, err := os.ReadFile(e.nameFile()); err == nil && strings.TrimSpace(string(kept)) == e.server {
		return nil // which needs no room on the disk
	}
	if err := os.MkdirAll(e.cfg.Dir, 0o700); err != nil {
		return err
	}
	return disk.Replace(e.nameFile(), []byte(e.server+"\n"), 0o600)
}

// Close stops all containers and returns when they are gone. Containers that have not ended
// when ctx ends are killed. Closing again does nothing.
func (t *Target) Close(ctx context.Context) error {
	t.Target.Close(ctx)
	return errors.Join(t.engine.leave(), t.engine.client.Close())
}

// prepared is a release whose images are at the engine.
type prepared struct {
	engine *engine
	spec   compute.Release
	pod    pod
}

// Release is the release, with its image named by digest.
func (p prepared) Release() compute.Release { return p.spec }

// Lone returns false, because each container has ports of its own.
func (*engine) Lone(compute.Release) bool { return false }

// Prepare makes the release's images available at the engine, and names them by their digests.
func (e *engine) Prepare(ctx context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	if err := e.meet(ctx); err != nil {
		return nil, noEngine(err)
	}
	p, err := newPod(spec)
	if err != nil {
		return nil, replica.Failed(compute.ReasonStartFailed, err.Error())
	}
	if err := e.logIn(ctx, spec.Ref, p.keys); err != nil {
		return nil, replica.Failed(compute.ReasonImageUnavailable, fmt.Sprintf("The image %s is not to be had: %s.", spec.Artifact.Image, err))
	}
	var failure *compute.Status
	if spec.Artifact.Image, failure = e.resolve(ctx, spec.Ref, spec.Artifact.Image, pullTag, p.keys); failure != nil {
		return nil, failure
	}
	p.spec.Artifact.Image = spec.Artifact.Image
	for _, containers := range [][]containerSpec{p.InitContainers, p.Sidecars} {
		for i, c := range containers {
			if containers[i].Image, failure = e.resolve(ctx, spec.Ref, c.Image, cmp.Or(c.ImagePullPolicy, pullIfNotPresent), p.keys); failure != nil {
				return nil, failure
			}
		}
	}
	return prepared{e, spec, p}, nil
}

func noEngine(err error) *compute.Status {
	return replica.Failed(compute.ReasonNoContainerEngine, fmt.Sprintf(
		"This server has no container engine, so it cannot run an image. Deploy from a git repository, or start Docker on its machine. (%v)", err))
}

// has returns the engine's size. The engine must have been met.
func (e *engine) has() size {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.size
}

// Erase removes everything that a release's replicas could not remove themselves, and the images
// that the engine has pulled for the release.
func (e *engine) Erase(spec compute.Release) error {
	e.mu.Lock()
	met := e.size != nil
	e.mu.Unlock()
	if !met {
		return os.RemoveAll(e.admissions(spec.Workspace, spec.Revision))
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	defer cancel()
	return errors.Join(e.sweep(ctx, labelRevision+"="+spec.Revision), e.forget(ctx, spec.Ref))
}
