package lambda

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"

	"github.com/slipway-run/slipway/internal/base/child"
)

// Config holds the parts and settings of a platform.
type Config struct {
	Functions []Function
	// Concurrency is how many calls the account has at once, of all functions that are no managed
	// instances: what no function reserves is shared by the others, and calls beyond it are
	// throttled. 0 is for no limit.
	Concurrency int
	// Processes is the directory of the records of processes: the next platform ends the
	// processes of a platform that was killed.
	Processes string
	// Temp is the directory that functions may write to, their TMPDIR; /tmp when empty.
	Temp string
	// Region and Account are part of the functions' ARNs; there are defaults.
	Region, Account string
	// Output gets the output of the functions, line by line, each line with the function's
	// name before it; nil drops the output.
	Output io.Writer
	// Log gets the starts and ends of processes; the default is slog's.
	Log *slog.Logger
	// InitLimit is how long a process may take to ask for its first call, IdleLimit is how
	// long a process is kept without a call. There are defaults.
	InitLimit, IdleLimit time.Duration
}

// Function is a function as a template declares it.
type Function struct {
	Name string
	// Alias is the only alias, "" for none.
	Alias string
	// Bootstrap is the program's file.
	Bootstrap string
	// Env holds the variables that the template declares; the platform adds its own variables.
	Env map[string]string
	// Timeout limits one call; 0 means 3 s, as on the platform.
	Timeout time.Duration
	// MemoryMB is passed to the function as information.
	MemoryMB int
	// Reserved is the reserved concurrency: calls beyond it are throttled. 0 means no reserved
	// concurrency.
	Reserved int
	// Concurrency is how many calls a process has at once, as on a managed instance; 0 means one.
	// A managed instance is there before its calls: if all processes are full, calls are throttled.
	Concurrency int
	// MaxProcesses is how many processes this machine starts at most: calls beyond it wait, or are
	// throttled. There is a default, which is 1 for processes with several calls at once. If the
	// account has a limit, the default is so high that no call waits.
	MaxProcesses int
}

// latest is the qualifier of the code that was deployed last.
const latest = "$LATEST"

const (
	defaultTimeout      = 3 * time.Second
	defaultMemory       = 128
	defaultMaxProcesses = 64
	defaultInitLimit    = 10 * time.Second
	defaultIdleLimit    = 5 * time.Minute
	// stopGrace is how long a process without a call may take to end.
	stopGrace = 500 * time.Millisecond
)

// Platform runs functions.
type Platform struct {
	config   Config
	registry *child.Registry
	pools    map[string]*pool
	account  *account
	output   sync.Mutex
	// ctx ends when Close stops waiting.
	ctx context.Context
	end context.CancelFunc
	// free releases the registry, once.
	free func() error
}

// New makes a platform. Processes are started by calls.
func New(config Config) (*Platform, error) {
	config.Region = cmp.Or(config.Region, "us-east-1")
	config.Account = cmp.Or(config.Account, "000000000000")
	config.Temp = cmp.Or(config.Temp, "/tmp")
	config.InitLimit = cmp.Or(config.InitLimit, defaultInitLimit)
	config.IdleLimit = cmp.Or(config.IdleLimit, defaultIdleLimit)
	config.Log = cmp.Or(config.Log, slog.Default())
	config.Output = cmp.Or[io.Writer](config.Output, io.Discard)
	account, err := newAccount(config.Concurrency, config.Functions)
	if err != nil {
		return nil, fmt.Errorf("new lambda platform: %w", err)
	}
	registry, err := child.Open(config.Processes)
	if err != nil {
		return nil, fmt.Errorf("new lambda platform: %w", err)
	}
	p := &Platform{config: config, account: account, registry: registry, pools: map[string]*pool{}, free: sync.OnceValue(registry.Close)}
	p.ctx, p.end = context.WithCancel(context.Background())
	for _, f := range config.Functions {
		f.Timeout = cmp.Or(f.Timeout, defaultTimeout)
		f.MemoryMB = cmp.Or(f.MemoryMB, defaultMemory)
		f.Concurrency = max(1, f.Concurrency)
		if f.MaxProcesses == 0 && f.Concurrency > 1 {
			f.MaxProcesses = 1
		}
		f.MaxProcesses = cmp.Or(f.MaxProcesses, config.Concurrency, defaultMaxProcesses)
		p.pools[f.Name] = newPool(p, f)
	}
	return p, nil
}

// ARN returns the globally unique name of a function.
func (p *Platform) ARN(function string) string {
	return "arn:aws:lambda:" + p.config.Region + ":" + p.config.Account + ":function:" + function
}

// pool finds a function by its name or its ARN. A qualifier must be the function's alias: a name
// without one is that of the code that was deployed last.
func (p *Platform) pool(function string) (*pool, error) {
	name := function
	if _, after, isARN := strings.Cut(function, ":function:"); isARN {
		name = after
	}
	name, qualifier, isQualified := strings.Cut(name, ":")
	if pool := p.pools[name]; pool != nil && (!isQualified || qualifier == latest || (qualifier == pool.function.Alias && qualifier != "")) {
		return pool, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownFunction, function)
}

// Invoke calls a function, given by its name or ARN, and returns its answer. When ctx ends,
// Invoke stops waiting, and the function continues. A *FunctionError is an error of the
// function; any other error happened before the function was called.
func (p *Platform) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	a, err := p.call(ctx, function, payload, false)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	return a.payload, nil
}

// InvokeStream is like Invoke for a function that streams its answer, and returns as soon as
// the answer has begun. The stream ends with ctx.
func (p *Platform) InvokeStream(ctx context.Context, function string, payload []byte) (*Stream, error) {
	a, err := p.call(ctx, function, payload, true)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	stream, err := newStream(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("invoke %s: %w", function, err)
	}
	return stream, nil
}

func (p *Platform) call(ctx context.Context, function string, payload []byte, streaming bool) (answer, error) {
	if len(payload) > MaxRequest {
		return answer{}, ErrTooLarge
	}
	pool, err := p.pool(function)
	if err != nil {
		return answer{}, err
	}
	call := newInvocation(id.New(time.Now()), payload, streaming)
	if err := pool.submit(call); err != nil {
		return answer{}, err
	}
	select {
	case a := <-call.answers:
		return a, a.err
	case <-ctx.Done():
		pool.leave(call)
		return answer{}, context.Cause(ctx)
	}
}

// Workers returns the ids of a function's processes.
func (p *Platform) Workers(function string) []int {
	pool, err := p.pool(function)
	if err != nil {
		return nil
	}
	return pool.pids()
}

// Close refuses new calls, lets running calls continue until ctx ends, and ends all processes.
func (p *Platform) Close(ctx context.Context) error {
	for _, pool := range p.pools {
		pool.close()
	}
	stop := context.AfterFunc(ctx, p.end)
	defer stop()
	for _, pool := range p.pools {
		pool.running.Wait()
	}
	p.end()
	return p.free()
}

// write passes on a whole line of a function.
func (p *Platform) write(function string, line []byte) error {
	p.output.Lock()
	defer p.output.Unlock()
	_, err := p.config.Output.Write(slices.Concat([]byte(function+": "), line, []byte("\n")))
	return err
}
