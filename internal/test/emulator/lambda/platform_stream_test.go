package lambda_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

func TestStream(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, open := gate(t)
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 3}))
	check.Must(t, err)
	defer stream.Close()
	if got, want := string(stream.Prelude), `{"statusCode":201,"headers":{"Content-Type":"text/event-stream"}}`; got != want {
		t.Errorf("the prelude is %s, want %s", got, want)
	}
	buffer := make([]byte, 100)
	for _, want := range []string{"part 1\n", "part 2\n", "part 3\n"} {
		n, err := stream.Read(buffer)
		if err != nil || string(buffer[:n]) != want {
			t.Fatalf("read %q, %v; want %q", buffer[:n], err, want)
		}
		open() // the next part is not made before this part was read
	}
	if n, err := stream.Read(buffer); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes, %v; want the end", n, err)
	}
}

func TestStreamsThatFail(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, open := gate(t)
	for _, c := range []struct {
		order         order
		name, message string
	}{
		{order{Do: "stream", Gate: path, Count: 2, Size: 1}, "errorString", "the agent hung up"},
		{order{Do: "stream", Gate: path, Count: 2, Size: 2}, lambda.TypeExit, "exit status 4"},
	} {
		stream, err := p.InvokeStream(t.Context(), "F", payload(t, c.order))
		check.Must(t, err)
		for _, want := range []string{"part 1\n", "part 2\n"} {
			part := make([]byte, len(want))
			if _, err := io.ReadFull(stream, part); err != nil || string(part) != want {
				t.Errorf("read %q, %v; want %q", part, err, want)
			}
			open() // a process that ends takes along what it has not sent yet
		}
		_, err = io.ReadAll(stream)
		wantFailure(t, err, c.name, c.message)
		check.Must(t, stream.Close())
	}
	_, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "fail"}))
	wantFailure(t, err, "errorString", "it went wrong")
	if _, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "endless prelude"})); err == nil || !strings.Contains(err.Error(), "does not end within") {
		t.Errorf("endless prelude: %v", err)
	}
	plain, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "plain stream", Count: 1}))
	check.Must(t, err)
	defer plain.Close()
	if text, err := io.ReadAll(plain); err != nil || string(text) != "part 1\n" || plain.Prelude != nil {
		t.Errorf("plain stream: %q, %v", text, err)
	}
	_, err = p.Invoke(t.Context(), "F", payload(t, order{Do: "stream", Count: 1, Size: 1}))
	wantFailure(t, err, "errorString", "the agent hung up")
}

// TestStreamsAreBounded has the longest stream, and one that is a byte longer, whose function goes
// on.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	// The next call waits for this process.
	p := platform(t, with(func(f *lambda.Function) { f.MaxProcesses = 1 }))
	for _, size := range []int{lambda.MaxStream, lambda.MaxStream + 1} {
		stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "long stream", Size: size}))
		check.Must(t, err)
		n, err := io.Copy(io.Discard, stream)
		if n != lambda.MaxStream {
			t.Errorf("%d bytes of %d arrived", n, size)
		}
		if size > lambda.MaxStream {
			wantFailure(t, err, lambda.TypeTooLarge, "209715200 bytes")
		} else if err != nil {
			t.Error(err)
		}
		check.Must(t, stream.Close())
	}
	if after := call[echoed](t, p, order{Do: "echo"}); after.Calls != 3 {
		t.Errorf("the process has had %d calls", after.Calls)
	}
}

func TestFunctionGoesOnWithoutItsReader(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, open := gate(t)
	for name, leave := range map[string]func(*lambda.Stream, context.CancelFunc){
		"closed":   func(s *lambda.Stream, _ context.CancelFunc) { s.Close() },
		"canceled": func(_ *lambda.Stream, cancel context.CancelFunc) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := p.InvokeStream(ctx, "F", payload(t, order{Do: "stream", Gate: path, Count: 2}))
		check.Must(t, err)
		pid := p.Workers("F")
		leave(stream, cancel)
		if _, err := io.ReadAll(stream); err == nil {
			t.Errorf("%s: the stream goes on", name)
		}
		for range 2 {
			open() // the function makes all its parts
		}
		eventually(t, name+": the process waits for another call", func() bool { return p.Free("F") == 1 })
		if now := p.Workers("F"); !slices.Equal(now, pid) {
			t.Errorf("%s: the processes are %v, before %v", name, now, pid)
		}
		stream.Close()
		cancel()
	}
}

func TestFunctionGoesOnWithoutItsCaller(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, arrival := waitingRoom(t)
	before := call[echoed](t, p, order{Do: "echo"})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := p.Invoke(ctx, "F", payload(t, order{Do: "wait", Gate: path}))
		left <- err
	}()
	pass := arrival()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	pass()
	eventually(t, "the process waits for another call", func() bool { return p.Free("F") == 1 })
	if after := call[echoed](t, p, order{Do: "echo"}); after.PID != before.PID || after.Calls != 3 {
		t.Errorf("the process was %+v and is %+v", before, after)
	}
}

func TestCloseLetsCallsEnd(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, open := gate(t)
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 1}))
	check.Must(t, err)
	defer stream.Close()
	closed := make(chan error, 1)
	go func() { closed <- p.Close(t.Context()) }()
	eventually(t, "new calls are refused", func() bool {
		_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"}))
		return errors.Is(err, lambda.ErrClosed)
	})
	open()
	text, err := io.ReadAll(stream)
	if err != nil || string(text) != "part 1\n" {
		t.Errorf("the stream was %q, %v", text, err)
	}
	check.Must(t, <-closed)
	if pids := p.Workers("F"); len(pids) != 0 {
		t.Errorf("the processes %v are left", pids)
	}
}

func TestCloseEndsWhatDoesNot(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, _ := gate(t)
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 1}))
	check.Must(t, err)
	defer stream.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Must(t, p.Close(ctx))
	_, err = io.ReadAll(stream)
	wantFailure(t, err, lambda.TypeExit, "signal: terminated")
}
