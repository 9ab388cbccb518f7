package web

import (
	"net/http"
	"sync"
)

// Page serves an HTML page that was made before the program was built; the first request reads it. contentPolicy is its Content-Security-Policy.
func Page(read func() []byte, contentPolicy string) http.Handler {
	type page struct {
		html []byte
		etag tag
	}
	once := sync.OnceValue(func() page {
		html := read()
		return page{html, newTag(html, 0)}
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := once()
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set(headerCacheControl, "no-cache")
		header.Set("ETag", page.etag.String())
		if known, ok := parseTags(r.Header.Values("If-None-Match")); ok && known.weakly(page.etag) {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(page.html) // a client that is gone needs no answer
	})
}
