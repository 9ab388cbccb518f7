package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// scanLimit is how many lines one Read looks at.
	scanLimit = 5000
	// blockSize is how many bytes are read at once. Only escaped lines can be longer.
	blockSize = 64 << 10
)

// Read returns a page of a log. Its times ascend, as far as the machine's clock does: reading
// ends at the first line beyond the bound that lies ahead.
func (l *Logs) Read(ctx context.Context, name revisionlog.Log, query revisionlog.Query) (revisionlog.Page, error) {
	if err := check(name); err != nil {
		return revisionlog.Page{}, err
	}
	at, err := position(query)
	if err != nil {
		return revisionlog.Page{}, err
	}
	// This is read before the lines, so that a page of a log that is not open misses no line.
	written := l.written(name)
	found, err := segments(l.dirOf(name), name.Kind)
	if err != nil {
		return revisionlog.Page{}, fmt.Errorf("list %s log of revision %s: %w", name.Kind, name.Revision, err)
	}
	p := &page{Query: query, at: at, scan: scanLimit}
	p.Open = written
	read := p.forward
	if query.Backward {
		read = p.backward
	}
	if err := read(ctx, found); err != nil {
		return revisionlog.Page{}, fmt.Errorf("read %s log of revision %s: %w", name.Kind, name.Revision, err)
	}
	if p.at >= 0 {
		p.Next = strconv.FormatInt(p.at, 10)
	}
	return p.Page, nil
}

// position returns where to begin. -1 is the end of the log, where reading backward begins.
func position(query revisionlog.Query) (int64, error) {
	if query.After == "" {
		if query.Backward {
			return -1, nil
		}
		return 0, nil
	}
	at, err := strconv.ParseInt(query.After, 10, 64)
	if err != nil || at < 0 {
		return 0, revisionlog.ErrPosition
	}
	return at, nil
}

// page is a page that is being read.
type page struct {
	revisionlog.Query
	revisionlog.Page
	// begin and at are the beginning and the end of the line that was looked at last.
	begin, at int64
	// scan is how many lines may still be looked at. over is true if the rest of the log is
	// beyond the requested times.
	scan int
	over bool
}

// full reports that no more lines should be looked at.
func (p *page) full() bool { return p.over || p.scan <= 0 || len(p.Lines) >= p.Limit }

// stored is a line as it is stored.
type stored struct {
	Timestamp time.Time
	Level     revisionlog.Level
	Message   string
}

// look takes a line into the page if the query asks for it.
func (p *page) look(data []byte, end int64) {
	p.begin, p.at = end-int64(len(data)), end
	p.scan--
	var line stored
	if json.Unmarshal(data, &line) == nil { // otherwise a crash has cut it short
		p.take(line)
	}
}

// take takes the line that ends at p.at.
func (p *page) take(line stored) {
	early := !p.From.IsZero() && line.Timestamp.Before(p.From)
	late := !p.To.IsZero() && line.Timestamp.After(p.To)
	p.over = (p.Backward && early) || (!p.Backward && late)
	if !early && !late {
		p.Lines = append(p.Lines, revisionlog.Line{
			ID: strconv.FormatInt(p.at, 10), Timestamp: line.Timestamp, Level: line.Level, Message: line.Message,
		})
	}
}

// dropped adds a line that stands for the dropped lines at the beginning of a log. It has the
// time of the line that follows.
func (p *page) dropped(beginning int64, next []byte) {
	var line stored
	if json.Unmarshal(next, &line) != nil {
		return
	}
	line.Level = revisionlog.Warning
	line.Message = fmt.Sprintf("%d bytes of older output were dropped: a log keeps its last %d MB.", beginning, segmentCount*segmentSize>>20)
	p.begin, p.at = beginning, beginning
	p.take(line)
}

func (p *page) forward(ctx context.Context, segments []segment) error {
	for i, s := range segments {
		if i+1 < len(segments) && segments[i+1].start <= p.at {
			continue
		}
		if err := p.forwardIn(ctx, s, i == 0 && p.at < s.start); err != nil {
			return err
		}
		if p.full() {
			info, err := os.Stat(segments[len(segments)-1].path)
			p.More = err == nil && !p.over && p.at < segments[len(segments)-1].start+info.Size()
			return err
		}
	}
	return nil
}

// forwardIn looks at the lines of one file. noting says that earlier lines are missing.
func (p *page) forwardIn(ctx context.Context, s segment, noting bool) error {
	file, err := s.open()
	if file == nil || err != nil {
		return err
	}
	defer file.Close()
	begin := max(p.at, s.start)
	if _, err := file.Seek(begin-s.start, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReaderSize(file, blockSize); !p.full() && ctx.Err() == nil; {
		data, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a line without its end is still being written
		}
		if err != nil {
			return err
		}
		if noting {
			noting = false
			if p.dropped(s.start, data); p.full() {
				return nil
			}
		}
		begin += int64(len(data))
		p.look(data, begin)
	}
	return ctx.Err()
}

func (p *page) backward(ctx context.Context, segments []segment) error {
	behind := p.at // the line that ends here was the last one
	for i, s := range slices.Backward(segments) {
		if behind >= 0 && s.start >= behind {
			continue
		}
		first, err := p.backwardIn(ctx, s, behind)
		if err != nil {
			return err
		}
		if !p.full() && i == 0 && s.start > 0 {
			p.dropped(s.start, first)
		}
		if p.full() {
			oldest := segments[0].start
			p.More = !p.over && (p.begin > oldest || (oldest > 0 && p.at > oldest))
			return nil
		}
	}
	return nil
}

// backwardIn looks at the lines of one file from its end, and returns the line read last.
func (p *page) backwardIn(ctx context.Context, s segment, behind int64) (first []byte, err error) {
	file, err := s.open()
	if file == nil || err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := info.Size() // where the bytes begin that were read and not looked at
	if behind >= 0 {
		from = min(from, behind-s.start)
	}
	for rest := []byte{}; !p.full() && ctx.Err() == nil; {
		begin := bytes.LastIndexByte(rest[:max(0, len(rest)-1)], '\n') + 1
		if begin == 0 && from > 0 {
			block := make([]byte, min(blockSize, from))
			from -= int64(len(block))
			if _, err := file.ReadAt(block, from); err != nil {
				return nil, err
			}
			rest = slices.Concat(block, rest)
			continue
		}
		if len(rest) == 0 {
			return first, nil
		}
		data, end := rest[begin:], s.start+from+int64(len(rest))
		rest = rest[:begin]
		if data[len(data)-1] != '\n' {
			continue // it is still being written
		}
		if first = data; end != behind {
			p.look(data, end)
		}
	}
	return first, ctx.Err()
}

// open returns nil for a file that was dropped meanwhile.
func (s segment) open() (*os.File, error) {
	file, err := os.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return file, err
}
