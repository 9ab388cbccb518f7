package child

import (
	"errors"
	"io"
	"os"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// output copies the output of a group to one writer. The pipe is ours, not os/exec's, so that
// the end of the process is noticed even while a grandchild holds the pipe open.
type output struct {
	r, w  *os.File
	to    io.Writer
	ended chan struct{}
	err   error
}

func newOutput(to io.Writer) (*output, error) {
	if to == nil {
		to = io.Discard
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &output{r: r, w: w, to: to, ended: make(chan struct{})}, nil
}

// drain copies until the last writer is gone. It continues when the writer fails or panics,
// because a full pipe would stop the child.
func (o *output) drain() {
	defer close(o.ended)
	buf := make([]byte, 32<<10)
	for {
		n, err := o.r.Read(buf)
		if n > 0 {
			if err := guard.Run(nil, "write output of a process", func() error { return o.write(buf[:n]) }); err != nil && o.err == nil {
				o.err = err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			o.err = errors.Join(o.err, err)
			return
		}
	}
}

func (o *output) write(text []byte) error {
	_, err := o.to.Write(text)
	return err
}

// abandon closes the pipe of a process that was not started.
func (o *output) abandon() error { return errors.Join(o.r.Close(), o.w.Close()) }
