package authservice

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/outbound"
)

func TestFailuresSayLittle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		code      string
		temporary bool
	}{
		"time":    {context.DeadlineExceeded, codeUnreachable, true},
		"private": {outbound.ErrAddress, codeUnreachable, false},
		"large":   {outbound.ErrTooLarge, codeUnusable, true},
		"other":   {errors.New("secret"), codeUnusable, true},
	} {
		got := failed(c.err, "secret")
		if got.code != c.code || got.temporary != c.temporary || strings.Contains(got.Error(), "secret") {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := plain("a\"b\\c\n"+strings.Repeat("é", 400), nil); strings.ContainsAny(got, "\"\\\né") || len(got) > maxWords {
		t.Errorf("got %q", got)
	}
}
