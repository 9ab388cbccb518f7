package lambda

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// invocation is one call on its way through a pool and a process.
type invocation struct {
	id        string
	payload   []byte
	streaming bool
	// answers gets one answer.
	answers chan answer

	mu       sync.Mutex
	answered bool
	// failed is the reason why the call failed; a stream that has begun returns it when it
	// breaks off. failing is closed when failed is set.
	failed  error
	failing chan struct{}
}

// answer is the result of a call, or its streaming answer.
type answer struct {
	payload     []byte
	contentType string
	stream      *io.PipeReader
	err         error
}

func newInvocation(id string, payload []byte, streaming bool) *invocation {
	return &invocation{id: id, payload: payload, streaming: streaming, answers: make(chan answer, 1), failing: make(chan struct{})}
}

// answer gives the caller the answer; only the first answer counts.
func (i *invocation) answer(a answer) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if a.err != nil && i.failed == nil {
		i.failed = a.err
		close(i.failing)
	}
	if !i.answered {
		i.answered = true
		i.answers <- a
	}
}

func (i *invocation) fail(err error) { i.answer(answer{err: err}) }

// failure waits a moment for the reason why the call failed.
func (i *invocation) failure(patience time.Duration) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-i.failing:
		return i.failed
	case <-late.C:
		return platformError(TypeExit, "RequestId: %s Error: Runtime broke off its response", i.id)
	}
}

// Stream is a streaming answer of a function. Read returns a *FunctionError at the point where
// the function failed after it had begun. Closing the stream early does not stop the function,
// as on the platform: the rest of its answer is read and dropped.
type Stream struct {
	io.Reader
	// Prelude is the JSON object with status and headers that comes first in a stream for API
	// Gateway; nil if the function sent another kind of answer.
	Prelude json.RawMessage

	pipe   *io.PipeReader
	detach func() bool
}

// streamType marks an answer that begins with a prelude.
const streamType = "application/vnd.awslambda.http-integration-response"

// preludeEnd follows the prelude.
var preludeEnd = make([]byte, 8)

// newStream makes the stream of an answer that has begun; when ctx ends, so does the stream.
func newStream(ctx context.Context, a answer) (*Stream, error) {
	s := &Stream{Reader: a.stream, pipe: a.stream}
	s.detach = context.AfterFunc(ctx, func() { a.stream.CloseWithError(context.Cause(ctx)) })
	if a.contentType != streamType {
		return s, nil
	}
	buffered := bufio.NewReader(a.stream)
	prelude, err := readPrelude(buffered)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read prelude: %w", err), s.Close())
	}
	s.Reader, s.Prelude = buffered, prelude
	return s, nil
}

// readPrelude reads up to the end of the prelude and returns the prelude.
func readPrelude(r *bufio.Reader) (json.RawMessage, error) {
	var prelude []byte
	for !bytes.HasSuffix(prelude, preludeEnd) {
		if len(prelude) == MaxPrelude {
			return nil, fmt.Errorf("it does not end within %d bytes", MaxPrelude)
		}
		c, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil, io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		prelude = append(prelude, c)
	}
	return prelude[:len(prelude)-len(preludeEnd)], nil
}

// Close closes the stream.
func (s *Stream) Close() error {
	s.detach()
	return s.pipe.Close()
}
