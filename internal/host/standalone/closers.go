package standalone

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
)

// Closers closes the parts of a server. A part that could not be opened is not in it, so a server
// that was opened in part can be closed, too. The zero value is ready.
type Closers struct {
	closers []func(context.Context) error
}

// Add notes how to close a part that was opened.
func (c *Closers) Add(closer func(context.Context) error) { c.closers = append(c.closers, closer) }

// AddCloser is Add for a part that closes without a context.
func (c *Closers) AddCloser(opened io.Closer) {
	c.Add(func(context.Context) error { return opened.Close() })
}

// AddListener is AddCloser for a listener, which a server that has served has closed already.
func (c *Closers) AddListener(opened net.Listener) {
	c.Add(func(context.Context) error {
		if err := opened.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
}

// Close closes each part once, the part that was opened last first. It returns all errors.
func (c *Closers) Close(ctx context.Context) error {
	closers := c.closers
	c.closers = nil
	var errs []error
	for _, closer := range slices.Backward(closers) {
		errs = append(errs, closer(ctx))
	}
	return errors.Join(errs...)
}
