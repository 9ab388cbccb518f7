// Package id makes the identifiers of every resource: UUID version 7 (RFC 9562), so that ids sort
// by creation time.
package id

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// New returns a version 7 UUID for t in its canonical text form. The twelve bits after the
// milliseconds hold the fraction of the millisecond (RFC 9562, section 6.2, method 3), so ids of
// different microseconds sort by time.
func New(t time.Time) string {
	var u uuid.UUID
	if _, err := rand.Read(u[8:]); err != nil {
		// crypto/rand documents that this never happens.
		panic("id: the system has no randomness: " + err.Error())
	}
	micros := t.UnixMicro()
	ms, fraction := uint64(micros/1000), uint64(micros%1000)
	binary.BigEndian.PutUint64(u[:8], ms<<16|0x7000|fraction*4096/1000)
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}

// After returns now, or a time for which New makes a later id than before, if that is later: the
// clocks of two hosts may differ. before is "" if there is no earlier id.
func After(before string, now time.Time) time.Time {
	if next := Time(before).Add(time.Microsecond); next.After(now) {
		return next
	}
	return now
}

// First returns a text that sorts before all ids that New makes at t or later, and after all
// earlier ids; "" for the zero time.
func First(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.Before(time.UnixMilli(0)):
		return "0"
	default:
		return New(t)[:len("00000000-0000-7000")]
	}
}

// Of returns the UUID of version 8 that stands for some words. It is always the same UUID for
// the same words. No word holds a zero byte.
func Of(words ...string) string {
	return uuid.NewHash(sha256.New(), uuid.Nil, []byte(strings.Join(words, "\x00")), 8).String()
}

// Valid reports whether s is a UUID in its canonical 36 character text form, of any version.
func Valid(s string) bool {
	if len(s) != 36 {
		return false
	}
	_, err := uuid.Parse(s)
	return err == nil
}

// Time returns the microsecond that New was given for an id, the zero time if New has not made
// s.
func Time(s string) time.Time {
	u, err := uuid.Parse(s)
	if err != nil || u.Version() != 7 {
		return time.Time{}
	}
	bits := binary.BigEndian.Uint64(u[:8])
	ms, fraction := int64(bits>>16), int64(bits&0xfff)
	return time.UnixMicro(ms*1000 + (fraction*1000+4095)/4096).UTC()
}
