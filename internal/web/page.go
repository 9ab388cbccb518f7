package web

import (
	"net/http"
)

// Page serves an HTML page that was made before the program was built. contentPolicy is its Content-Security-Policy.
func Page(html []byte, contentPolicy string) http.Handler {
	etag := newTag(html, 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", contentPolicy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		header.Set("ETag", etag.String())
		if known, ok := parseTags(r.Header.Values("If-None-Match")); ok && known.weakly(etag) {
			header.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(html) // a client that is gone needs no answer
	})
}
