package revisionlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Tail returns the last n lines of a log, the oldest of them first. A log that does not exist is empty.
func (l *Logs) Tail(revision string, kind Kind, n int) ([]Line, error) {
	found, err := l.segments(revision, kind)
	if err != nil {
		return nil, err
	}
	var tail []Line
	for _, s := range slices.Backward(found) {
		data, err := s.read()
		if err != nil {
			return nil, fmt.Errorf("read %s log of revision %s: %w", kind, revision, err)
		}
		for len(data) > 0 && len(tail) < n {
			begin := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
			if line, ok := parse(data[begin:], s.start+int64(begin)); ok {
				tail = append(tail, line)
			}
			data = data[:begin]
		}
	}
	slices.Reverse(tail)
	return tail, nil
}

// Read returns up to limit lines from offset on, and the offset to go on from. Lines that were dropped are passed over. At the
// end of the log there are no lines, and next is where the next one will be.
func (l *Logs) Read(revision string, kind Kind, offset int64, limit int) (lines []Line, next int64, err error) {
	found, err := l.segments(revision, kind)
	if err != nil {
		return nil, 0, err
	}
	next = offset
	for i, s := range found {
		if i+1 < len(found) && found[i+1].start <= offset {
			continue
		}
		next = max(next, s.start)
		room := limit - len(lines)
		page, err := s.readFrom(next, room)
		if err != nil {
			return nil, 0, fmt.Errorf("read %s log of revision %s: %w", kind, revision, err)
		}
		for _, data := range page {
			if line, ok := parse(data, next); ok {
				lines = append(lines, line)
			}
			next += int64(len(data))
		}
		if len(page) == room {
			break // there may be more in this file
		}
	}
	return lines, next, nil
}

func (l *Logs) segments(revision string, kind Kind) ([]segment, error) {
	k, err := newKey(revision, kind)
	if err != nil {
		return nil, err
	}
	found, err := segments(l.revisionDir(k), kind)
	if err != nil {
		return nil, fmt.Errorf("list %s log of revision %s: %w", kind, revision, err)
	}
	return found, nil
}

// read returns the whole lines of the file; one that was dropped meanwhile has none.
func (s segment) read() ([]byte, error) {
	data, err := os.ReadFile(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return data[:bytes.LastIndexByte(data, '\n')+1], nil
}

// readFrom returns up to limit whole lines from an offset of the log on; a file that was dropped meanwhile has none.
func (s segment) readFrom(offset int64, limit int) ([][]byte, error) {
	file, err := os.Open(s.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var page [][]byte
	if _, err = file.Seek(offset-s.start, io.SeekStart); err == nil {
		page, err = readLines(bufio.NewReaderSize(file, 64<<10), limit)
	}
	return page, errors.Join(err, file.Close())
}

func readLines(r *bufio.Reader, limit int) (page [][]byte, err error) {
	for len(page) < limit {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return page, nil // a line without its end is still being written
		}
		if err != nil {
			return nil, err
		}
		page = append(page, line)
	}
	return page, nil
}

// parse reads one line; a line that a crash cut short is none.
func parse(data []byte, offset int64) (Line, bool) {
	line := Line{}
	if err := json.Unmarshal(data, &line); err != nil {
		return Line{}, false
	}
	line.Offset = offset
	return line, true
}
