package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/build"
)

const (
	// processLimit bounds the processes and threads of one command.
	processLimit = 4096
	// diskPause is the least time between two looks at the files of a build. The looks take no
	// more than a tenth of the time, however many files there are.
	diskPause = 500 * time.Millisecond
)

// limit is the error with which the context of a build ends when the build has reached a limit. why
// follows the words "the build was stopped".
type limit struct{ reason, why string }

func (l *limit) Error() string { return "the build was stopped " + l.why }

// bounded returns the context of a build's work. The context ends when the build has reached a
// limit. A build can exceed the limit between two looks at the disk. A build whose files take
// too much disk at its end fails, too.
func (j *job) bounded(dir string) (ctx context.Context, release func()) {
	cfg := j.builder.cfg
	timed, endTimed := context.WithTimeoutCause(j.ctx, cfg.Timeout, &limit{build.ReasonBuildTimeout, fmt.Sprintf("after %s", cfg.Timeout)})
	ctx, cancel := context.WithCancelCause(timed)
	var watching sync.WaitGroup
	watching.Go(func() {
		for pause := diskPause; ; {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			began := time.Now()
			err := guard.Run(cfg.Log, "look at the disk of a build", func() error {
				if j.overfull(dir) {
					cancel(&limit{build.ReasonOutOfDisk, fmt.Sprintf("because its files took more than the %d MB of disk that they may", cfg.DiskMB)})
				}
				if cfg.Space.Reserve() != nil {
					cancel(&limit{build.ReasonOutOfDisk, "because the server's disk is nearly full"})
				}
				if j.hoards() {
					cancel(&limit{build.ReasonOutOfSockets, fmt.Sprintf("because it held more than the %d sockets that it may", cfg.Sockets)})
				}
				return nil
			})
			if err != nil {
				cancel(err)
				return
			}
			pause = max(diskPause, 10*time.Since(began))
		}
	})
	return ctx, func() {
		cancel(nil)
		endTimed()
		watching.Wait()
	}
}

// stopped returns the failure of a build that has reached a limit, with the work that it was
// doing; nil if the build has reached no limit.
func stopped(ctx context.Context, doing string) error {
	reached, ok := errors.AsType[*limit](context.Cause(ctx))
	if !ok {
		return nil
	}
	return build.Fail(reached.reason, "%v, while %s", reached, doing)
}

// hoards reports whether the command that runs, with all processes that it has started, holds more
// sockets than a build may. It looks at them only while the machine has so many.
func (j *job) hoards() bool {
	running, most := j.running.Load(), j.builder.cfg.Sockets
	return running != nil && child.SocketsInUse() > most && child.Sockets([]*child.Process{running})[running] > most
}

// ended returns the failure of a build whose work ended with this error because the build has
// reached a limit, and the error itself otherwise.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return cmp.Or(stopped(ctx, "its files were being prepared."), err)
}

// checkRoom refuses a build that the server has no room for.
func (j *job) checkRoom() error {
	err := j.builder.cfg.Space.Room()
	if room := j.builder.cfg.Room; err == nil && room != nil {
		err = room(j.spec.Workspace)
	}
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return build.Fail(build.ReasonOutOfDisk, "the build was not begun. %s", err)
	}
	return err
}

// overfull reports whether the files of a build, or the files in its home, take more disk than
// they may.
func (j *job) overfull(dir string) bool {
	cfg := j.builder.cfg
	return takesMore(dir, cfg.DiskMB) || takesMore(j.home, cfg.HomeMB+cfg.DiskMB)
}

// checkExtent refuses files that the server is about to copy or to read, if copies of them would
// take more disk than the files of a build may. Commands of a repository can make files that take
// little disk and have any size: files with holes, and many names of one file.
func (j *job) checkExtent(files fs.FS) error {
	most := int64(j.builder.cfg.DiskMB) << 20
	bytes, err := extent(files, most)
	if err != nil || bytes <= most {
		return err
	}
	return build.Fail(build.ReasonOutOfDisk, "copies of the build's files would take more than the %d MB of disk that they may: "+
		"a file with holes counts in full, and a file with several names counts once for each name.", j.builder.cfg.DiskMB)
}

// extent returns how many bytes copies of files would have. It stops when the sum is larger than
// enough.
func extent(files fs.FS, enough int64) (bytes int64, err error) {
	err = fs.WalkDir(files, ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if bytes += min(info.Size(), enough+1); bytes > enough {
			return fs.SkipAll
		}
		return nil
	})
	return bytes, err
}

// takesMore reports whether the files in a directory take more disk than so many megabytes.
func takesMore(dir string, megabytes int) bool {
	most := int64(megabytes) << 20
	return disk.Taken(dir, most) > most
}
