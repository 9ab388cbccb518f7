package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

const bucket = "slipway-uploads"

// TestAnAddressIsSignedForOneUpload looks at the parts of an address that S3 will check. It
// sends no request.
func TestAnAddressIsSignedForOneUpload(t *testing.T) {
	t.Parallel()
	store := s3.New(aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "token")}, bucket)
	ref := uploadtest.NewRef()
	grant, err := store.Grant(t.Context(), ref, "https://slipway.test")
	check.Must(t, err)
	at, err := url.Parse(grant.URL)
	check.Must(t, err)
	if at.Scheme != "https" || at.Host != bucket+".s3.eu-central-1.amazonaws.com" || at.Path != "/sources/"+ref.Path() {
		t.Errorf("it is to be sent to %s", at.Redacted())
	}
	query := at.Query()
	if query.Get("X-Amz-Expires") != "900" || query.Get("X-Amz-SignedHeaders") != "content-type;host;if-none-match;x-amz-tagging" {
		t.Errorf("what is signed is %s, for %s s", query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Expires"))
	}
	for name := range query {
		if strings.Contains(strings.ToLower(name), "checksum") {
			t.Errorf("the content would have to have the checksum %s", name)
		}
	}
	if diff := cmp.Diff(map[string]string{"Content-Type": upload.ContentType, "If-None-Match": "*", "X-Amz-Tagging": "slipway=unnamed"}, grant.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got, want := store.URI(ref), "s3://"+bucket+"/sources/"+ref.Path(); got != want {
		t.Errorf("a builder finds it at %s, want %s", got, want)
	}
}

// TestOnlyWhatCanBeBuiltIsKept checks that a tarball that is too large keeps the tag by which
// the bucket removes it, and that nothing is asked for about a tarball that does not exist.
func TestOnlyWhatCanBeBuiltIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int64
		kept bool
	}{"as large as it may be": {upload.MaxSize, true}, "too large": {upload.MaxSize + 1, false}, "not there": {-1, false}} {
		ref := uploadtest.NewRef()
		kept := ""
		bucketServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete && r.URL.RawQuery == "tagging=" {
				kept = r.URL.Path
				w.WriteHeader(http.StatusNoContent)
				return
			}
			if r.Method != http.MethodGet || r.URL.Query().Get("prefix") != s3.Prefix+ref.Path() {
				t.Errorf("%s: got %s %s", name, r.Method, r.URL)
			}
			found := ""
			if c.size >= 0 {
				found = fmt.Sprintf("<Contents><Key>%s</Key><Size>%d</Size></Contents>", s3.Prefix+ref.Path(), c.size)
			}
			fmt.Fprintf(w, "<ListBucketResult>%s</ListBucketResult>", found)
		}))
		store := s3.New(aws.Config{
			Region: "eu-central-1", BaseEndpoint: &bucketServer.URL, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), HTTPClient: bucketServer.Client(),
		}, bucket)
		err := store.Keep(t.Context(), ref)
		bucketServer.Close()
		if want := "/" + bucket + "/" + s3.Prefix + ref.Path(); err != nil || (kept == want) != c.kept || (kept == "") == c.kept {
			t.Errorf("%s: kept %q, %v", name, kept, err)
		}
	}
}
