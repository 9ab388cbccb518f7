package event

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// window is how late an event of a workspace may become visible so that it is still read.
	window = time.Minute
	// mostSeen is how many deployments and listeners a position holds. If more of them have
	// events within the window, the window is shorter.
	mostSeen = 32
)

// position says which events of a workspace were read: all events up to floor, and the events
// of each deployment or listener in seen up to its time.
type position struct {
	floor time.Time
	seen  map[string]time.Time
}

// covers reports whether the event of a deployment or listener at the given time was read.
func (p *position) covers(subject string, at time.Time) bool {
	return !at.After(p.floor) || !at.After(p.seen[subject])
}

// read notes that an event was read.
func (p *position) read(e Event) {
	p.seen[e.subject()] = e.At
	p.raise(e.At.Add(-window))
	for len(p.seen) > mostSeen {
		oldest := e.At
		for _, at := range p.seen {
			if at.Before(oldest) {
				oldest = at
			}
		}
		p.raise(oldest)
	}
}

func (p *position) raise(floor time.Time) {
	if floor.After(p.floor) {
		p.floor = floor
	}
	for subject, at := range p.seen {
		if !at.After(p.floor) {
			delete(p.seen, subject)
		}
	}
}

// String is the position as clients hold it.
func (p *position) String() string {
	text := binary.AppendVarint(nil, p.floor.UnixMicro())
	for _, subject := range slices.Sorted(maps.Keys(p.seen)) {
		raw, err := hex.DecodeString(strings.ReplaceAll(subject, "-", ""))
		if err != nil || len(raw) != rawID {
			panic("event: the id of what an event happened to is no UUID: " + subject)
		}
		text = binary.AppendUvarint(append(text, raw...), uint64(p.seen[subject].Sub(p.floor).Microseconds()))
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

const rawID = 16

// parsePosition reads what String wrote; "" is the beginning.
func parsePosition(text string) (*position, error) {
	p := &position{floor: time.UnixMicro(0).UTC(), seen: map[string]time.Time{}}
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	floor, n := binary.Varint(raw)
	if err != nil || n <= 0 || floor < 0 {
		return nil, errPosition
	}
	p.floor = time.UnixMicro(floor).UTC()
	for raw = raw[n:]; len(raw) > 0; raw = raw[n:] {
		if len(raw) <= rawID || len(p.seen) == mostSeen {
			return nil, errPosition
		}
		digits := hex.EncodeToString(raw[:rawID])
		raw = raw[rawID:]
		var after uint64
		if after, n = binary.Uvarint(raw); n <= 0 || after > uint64(window.Microseconds()) {
			return nil, errPosition
		}
		subject := strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
		p.seen[subject] = p.floor.Add(time.Duration(after) * time.Microsecond)
	}
	return p, nil
}
