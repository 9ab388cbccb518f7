package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
)

// Config is what Images need. Values that are zero get the default named at each.
type Config struct {
	// Host is the engine's address; "" takes that of DOCKER_HOST and its companions, or else the
	// engine's usual one.
	Host string
	// Memory is how many bytes each step of a build may use (4 GiB).
	Memory int64
	// Network is that of the steps ("default", the engine's own).
	Network string
	// EngineLimit is how long Open waits for the engine (10 s).
	EngineLimit time.Duration
}

const (
	// forgetLimit bounds the removal of what a failed build has made.
	forgetLimit = time.Minute
	// useLimit is how long the containers of an image are waited for that is to be removed, and
	// useRetry the time between two looks.
	useLimit, useRetry = 30 * time.Second, 500 * time.Millisecond
	// buildTries is how often an image is built from layers that are gone before it is.
	buildTries = 3
)

// errLayerGone tells that an image was removed while a build, which had found layers of it, went on
// from them.
var errLayerGone = errors.New("a layer of another image is gone")

// Images makes images.
type Images struct {
	cfg    Config
	engine *client.Client
}

// ErrNoEngine tells that nothing here can make images.
var ErrNoEngine = errors.New("images cannot be built, because no container engine answers")

// Open looks for the engine, which must answer.
func Open(ctx context.Context, cfg Config) (*Images, error) {
	cfg.Memory = cmp.Or(cfg.Memory, 4<<30)
	cfg.EngineLimit = cmp.Or(cfg.EngineLimit, 10*time.Second)
	options := []client.Opt{client.FromEnv}
	if cfg.Host != "" {
		options = append(options, client.WithHost(cfg.Host))
	}
	engine, err := client.New(options...)
	if err != nil {
		return nil, fmt.Errorf("open container engine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.EngineLimit)
	defer cancel()
	if _, err := engine.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoEngine, err), engine.Close())
	}
	return &Images{cfg: cfg, engine: engine}, nil
}

// Close lets go of the engine.
func (i *Images) Close() error { return i.engine.Close() }

// tagOf keeps the image of a revision.
func tagOf(revision string) string { return "slipway/agent:" + revision }

// Build makes the image of a tree, writes what is printed to log, and returns the image's id. When
// ctx ends the engine stops what it does.
func (i *Images) Build(ctx context.Context, revision string, recipe dockerfile.Recipe, tree *os.Root, log io.Writer) (string, error) {
	if err := i.haveBase(ctx, recipe.Base); err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		id, err := i.try(ctx, revision, recipe, tree, log)
		if !errors.Is(err, errLayerGone) || try == buildTries {
			return id, err
		}
	}
}

func (i *Images) try(ctx context.Context, revision string, recipe dockerfile.Recipe, tree *os.Root, log io.Writer) (string, error) {
	reader, writer := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		writer.CloseWithError(guard.Run(nil, "pack a tree", func() error { return pack(writer, recipe, tree) }))
	}()
	id, err := i.build(ctx, revision, recipe, reader, log)
	reader.Close()
	<-packed
	return id, err
}

func (i *Images) build(ctx context.Context, revision string, recipe dockerfile.Recipe, packed io.Reader, log io.Writer) (string, error) {
	answer, err := i.engine.ImageBuild(ctx, packed, client.ImageBuildOptions{
		Tags: []string{tagOf(revision)}, Remove: true, ForceRemove: true, BuildArgs: proxies(),
		Memory: i.cfg.Memory, MemorySwap: i.cfg.Memory, NetworkMode: i.cfg.Network,
	})
	if err != nil {
		return "", fmt.Errorf("build image: %w", err)
	}
	id, last, err := follow(answer.Body, recipe, log)
	err = errors.Join(err, answer.Body.Close())
	if err != nil {
		i.forget(ctx, last)
	}
	return id, err
}

// forget erases what a build has made that did not end, except what others have in common with it.
// It is not an error of the build when that fails.
func (i *Images) forget(ctx context.Context, last string) {
	if last == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetLimit)
	defer cancel()
	_ = i.remove(ctx, last)
}

// remove removes an image, and what no other has in common with it. It waits a while for containers
// that still use it, as that of a step does that is being stopped.
func (i *Images) remove(ctx context.Context, image string) error {
	for giveUp := time.Now().Add(useLimit); ; {
		_, err := i.engine.ImageRemove(ctx, image, client.ImageRemoveOptions{PruneChildren: true})
		switch {
		case err == nil || errdefs.IsNotFound(err):
			return nil
		case !inUse(err) || time.Now().After(giveUp):
			return err
		case !clock.Sleep(ctx, useRetry):
			return ctx.Err()
		}
	}
}

// inUse tells that a container is why an image cannot be removed. Images that were made from it are
// a conflict too, and stay.
func inUse(err error) bool {
	return errdefs.IsConflict(err) && strings.Contains(err.Error(), "container")
}

// haveBase makes the base image be there. One that is there is not looked for anew, so that a
// machine can be without its registry.
func (i *Images) haveBase(ctx context.Context, image string) error {
	_, err := i.engine.ImageInspect(ctx, image)
	if err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	progress, err := i.engine.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = errors.Join(progress.Wait(ctx), progress.Close())
	}
	if err != nil && ctx.Err() == nil {
		return build.Fail(build.ReasonRuntimeMissing, "the base image %s is not to be had: %s.", image, strings.TrimPrefix(err.Error(), "Error response from daemon: "))
	}
	return err
}

// proxies are the variables that engines hand to the steps of a build without keeping them in the
// image. The steps are a tenant's, so they get no credentials.
func proxies() map[string]*string {
	given := map[string]*string{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			value = build.WithoutCredentials(value)
			given[name] = &value
		}
	}
	return given
}

// message is one of what the engine says about a build.
type message struct {
	Stream string `json:"stream"`
	Aux    struct {
		ID string `json:"ID"`
	} `json:"aux"`
	Error *engineError `json:"errorDetail"`
}

// engineError is why the engine ends a build: a step's exit code, or a trouble of its own.
type engineError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *engineError) Error() string { return e.Message }

// Is tells the troubles for which the engine has no type.
func (e *engineError) Is(target error) bool {
	return target == errLayerGone && strings.Contains(e.Message, "unknown parent image ID")
}

// stepLine is how the engine begins a step, madeLine how it names what a step has made.
var (
	stepLine = regexp.MustCompile(`^Step (\d+)/\d+ : `)
	madeLine = regexp.MustCompile(`^ ---> ([0-9a-f]{12,64})\n?$`)
)

// follow reads the engine's messages to their end.
// It returns the image's id, and before there is one that of what the last step has made.
func follow(body io.Reader, recipe dockerfile.Recipe, log io.Writer) (id, last string, err error) {
	step, said := 0, output{to: log}
	for decoder := json.NewDecoder(body); ; {
		var m message
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", last, fmt.Errorf("build image: %w", err)
		}
		if m.Error != nil {
			if m.Error.Code > 0 && step > 0 && step <= len(recipe.Steps) && recipe.Steps[step-1] != (dockerfile.Step{}) {
				return "", last, &dockerfile.StepError{Step: recipe.Steps[step-1], Code: m.Error.Code}
			}
			return "", last, fmt.Errorf("build image: step %d: %w", step, m.Error)
		}
		if found := stepLine.FindStringSubmatch(m.Stream); found != nil {
			step, _ = strconv.Atoi(found[1])
		}
		if made := madeLine.FindStringSubmatch(m.Stream); made != nil && step > 1 { // the first one is the base image
			last = made[1]
		}
		if m.Aux.ID != "" {
			id = m.Aux.ID
		}
		if err := said.write(m.Stream); err != nil {
			return "", last, err
		}
	}
	if id == "" {
		return "", last, errors.New("build image: the engine ended without an image")
	}
	return id, last, nil
}

// output makes lines of what the engine says, without what it says about itself.
type output struct {
	to io.Writer
	// open tells that the last line has not ended.
	open bool
}

var (
	// colors mark what a step has printed as an error.
	colors = strings.NewReplacer("\x1b[91m", "", "\x1b[0m", "")
	// ownWords begin what the engine says about its own work.
	ownWords = []string{" ---> ", "Removing intermediate container ", "Successfully built ", "Successfully tagged "}
)

func (o *output) write(text string) error {
	text = colors.Replace(text)
	if strings.TrimSpace(text) == "" || slices.ContainsFunc(ownWords, func(words string) bool { return strings.HasPrefix(text, words) }) {
		return nil
	}
	if stepLine.MatchString(text) {
		text = strings.TrimRight(text, "\n") + "\n"
		if o.open {
			text = "\n" + text
		}
	}
	o.open = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(o.to, text)
	return err
}

// Remove forgets the image of a revision.
func (i *Images) Remove(ctx context.Context, revision string) error {
	if err := i.remove(ctx, tagOf(revision)); err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	return nil
}
