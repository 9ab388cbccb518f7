package lambda

import (
	"bytes"
	"strings"
	"sync"
)

// maxTail is how many bytes of a process's output are kept to explain a failed start, maxLine
// is the length at which a line is cut.
const maxTail, maxLine = 4 << 10, 64 << 10

// output cuts the output of a process into lines, and keeps its end.
type output struct {
	write func(line []byte) error

	mu   sync.Mutex
	line []byte
	tail []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tail = append(o.tail, p...)
	o.tail = o.tail[max(0, len(o.tail)-maxTail):]
	o.line = append(o.line, p...)
	for {
		line, rest, found := bytes.Cut(o.line, []byte("\n"))
		if !found && len(line) < maxLine {
			return len(p), nil
		}
		if err := o.write(line); err != nil {
			return 0, err
		}
		o.line = append([]byte(nil), rest...)
	}
}

// flush writes a last line without a line end.
func (o *output) flush() {
	if o.unfinished() {
		_, _ = o.Write([]byte("\n")) // the process has ended, so an error has no receiver
	}
}

func (o *output) unfinished() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.line) > 0
}

func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(string(o.tail))
}
