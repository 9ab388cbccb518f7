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

// Config is the configuration of Images. A value that is zero gets the default that is named
// at it.
type Config struct {
	// Host is the engine's address. "" takes the address of DOCKER_HOST and its related
	// variables, or else the engine's usual address.
	Host string
	// Memory is how many bytes each step of a build may use (4 GiB).
	Memory int64
	// EngineLimit is how long Open waits for the engine (10 s).
	EngineLimit time.Duration
}

const (
	// forgetLimit bounds the removal of the images that a failed build has made.
	forgetLimit = time.Minute
	// useLimit is how long the removal of an image waits for the containers that use the
	// image. useRetry is the time between two tries.
	useLimit, useRetry = 30 * time.Second, 500 * time.Millisecond
	// buildTries is how many times an image is built if layers that it is built from are
	// removed meanwhile.
	buildTries = 3
)

// errLayerGone is the error of a build that had found the layers of an image and went on from
// them, while the image was removed.
var errLayerGone = errors.New("a layer of another image is gone")

// Images makes images.
type Images struct {
	cfg    Config
	engine *client.Client
}

// ErrNoEngine is the error of Open if no container engine here can make images.
var ErrNoEngine = errors.New("images cannot be built, because no container engine answers")

// Open connects to the engine, which must answer.
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

// Close closes the connection to the engine.
func (i *Images) Close() error { return i.engine.Close() }

// tagOf returns the tag that keeps the image of a revision.
func tagOf(revision string) string { return "slipway/agent:" + revision }

// Build makes the image of a tree, writes the output to log, and returns the image's id. When
// ctx ends, the engine stops the build.
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
		Memory: i.cfg.Memory, MemorySwap: i.cfg.Memory,
	})
	if err != nil {
		return "", fmt.Errorf("build image: %w", err)
	}
	id, last, err := follow(answer.Body, recipe, log)
	err = errors.Join(err, answer.Body.Close())
	if err != nil && last != "" {
		// The layers that the build has made are erased, except those that other images have in
		// common with it. If this fails, it is not an error of the build.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetLimit)
		defer cancel()
		_ = i.remove(ctx, last)
	}
	return id, err
}

// remove removes an image, and the layers that no other image has in common with it. It waits
// a while for containers that still use the image, as the container of a step does while it is
// being stopped.
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

// inUse reports whether an image cannot be removed because of a container. Images that were
// made from it are a conflict too, and stay.
func inUse(err error) bool {
	return errdefs.IsConflict(err) && strings.Contains(err.Error(), "container")
}

// haveBase makes sure that the base image is there. It does not look in the registry for an
// image that is already there, so that a machine can work without the registry.
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

// proxies returns the variables that engines hand to the steps of a build without keeping them
// in the image. The steps belong to a tenant, so they get no credentials.
func proxies() map[string]*string {
	given := map[string]*string{}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			_, value, _ = strings.Cut(build.WithoutCredentials(name+"="+value), "=")
			given[name] = &value
		}
	}
	return given
}

// message is a message of the engine about a build.
type message struct {
	Stream string `json:"stream"`
	Aux    struct {
		ID string `json:"ID"`
	} `json:"aux"`
	Error *engineError `json:"errorDetail"`
}

// engineError is the reason why the engine ends a build: a step's exit code, or an error of
// the engine itself.
type engineError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *engineError) Error() string { return e.Message }

// Is recognizes the errors for which the engine has no type.
func (e *engineError) Is(target error) bool {
	return target == errLayerGone && strings.Contains(e.Message, "unknown parent image ID")
}

// of returns the failure of a step that is not the platform's fault, nil if it is.
func (e *engineError) of(recipe dockerfile.Recipe, step int) error {
	if step == 0 || step > len(recipe.Steps) {
		return nil
	}
	if s := recipe.Steps[step-1]; s.Own || (e.Code > 0 && s != (dockerfile.Step{})) {
		return &dockerfile.StepError{Step: s, Code: e.Code, Refusal: e.Message}
	}
	return nil
}

// stepLine matches the line with which the engine begins a step. madeLine matches the line
// that names the image that a step has made.
var (
	stepLine = regexp.MustCompile(`^Step (\d+)/\d+ : `)
	madeLine = regexp.MustCompile(`^ ---> ([0-9a-f]{12,64})\n?$`)
)

// follow reads the engine's messages to their end. It returns the image's id and, as last, the
// id of the image that the last step has made.
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
			if failed := m.Error.of(recipe, step); failed != nil {
				return "", last, failed
			}
			return "", last, fmt.Errorf("build image: step %d: %w", step, m.Error)
		}
		if found := stepLine.FindStringSubmatch(m.Stream); found != nil {
			step, _ = strconv.Atoi(found[1])
		}
		// Step 1 is the base image.
		if made := madeLine.FindStringSubmatch(m.Stream); made != nil && step > 1 {
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

// output writes the engine's messages as lines, without the messages about the engine itself.
type output struct {
	to io.Writer
	// open reports whether the last line has not ended yet.
	open bool
}

var (
	// colors are the marks of text that a step has printed as an error.
	colors = strings.NewReplacer("\x1b[91m", "", "\x1b[0m", "")
	// ownWords are the beginnings of the engine's messages about its own work.
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

// Remove removes the image of a revision.
func (i *Images) Remove(ctx context.Context, revision string) error {
	if err := i.remove(ctx, tagOf(revision)); err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	return nil
}
