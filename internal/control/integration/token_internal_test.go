package integration

import (
	"testing"
	"time"
)

// TestTheNewestTokensAreKept when there are more tokens than the cache has room for.
func TestTheNewestTokensAreKept(t *testing.T) {
	t.Parallel()
	cache, now := newTokenCache(), time.Unix(1e9, 0)
	for i := range int64(maxTokens + 1) {
		cache.put(tokenKey{installation: i}, token{value: "value", expires: now.Add(time.Hour)}, 0)
	}
	if held, _ := cache.get(tokenKey{installation: maxTokens}, now); held.value == "" {
		t.Error("the newest token is not kept")
	}
	if held, _ := cache.get(tokenKey{installation: 0}, now); held.value != "" {
		t.Error("the token that was used least recently is kept")
	}
}
