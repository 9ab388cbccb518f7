package s3_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
)

const bucket = "slipway-uploads"

// TestAnAddressIsSignedForOneUpload looks at the parts of an address that S3 will check. It
// sends no request.
func TestAnAddressIsSignedForOneUpload(t *testing.T) {
	t.Parallel()
	store := s3.New(aws.Config{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "token")}, bucket)
	ref := uploadtest.NewRef()
	grant, err := store.Grant(t.Context(), ref, "https://slipway.test")
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(grant.URL)
	if err != nil {
		t.Fatal(err)
	}
	if at.Scheme != "https" || at.Host != bucket+".s3.eu-central-1.amazonaws.com" || at.Path != "/sources/"+ref.Path() {
		t.Errorf("it is to be sent to %s", at.Redacted())
	}
	query := at.Query()
	if query.Get("X-Amz-Expires") != "900" || query.Get("X-Amz-SignedHeaders") != "content-type;host;if-none-match" {
		t.Errorf("what is signed is %s, for %s s", query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Expires"))
	}
	for name := range query {
		if strings.Contains(strings.ToLower(name), "checksum") {
			t.Errorf("the content would have to have the checksum %s", name)
		}
	}
	if diff := cmp.Diff(map[string]string{"Content-Type": upload.ContentType, "If-None-Match": "*"}, grant.Headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if got, want := store.URI(ref), "s3://"+bucket+"/sources/"+ref.Path(); got != want {
		t.Errorf("a builder finds it at %s, want %s", got, want)
	}
}
