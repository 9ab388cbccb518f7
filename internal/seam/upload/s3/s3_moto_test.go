//go:build moto

package s3_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/mototest"
)

// opened is a store whose tarballs are read in the way in which a builder reads them.
type opened struct {
	*s3.Store
	client *awss3.Client
}

func (o opened) Open(ctx context.Context, ref upload.Ref) (io.ReadCloser, error) {
	found, err := o.client.GetObject(ctx, &awss3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(s3.Prefix + ref.Path())})
	if _, missing := errors.AsType[*types.NoSuchKey](err); missing {
		return nil, upload.ErrMissing
	}
	if err != nil {
		return nil, err
	}
	return found.Body, nil
}

func TestMotoConformance(t *testing.T) {
	t.Parallel()
	config := aws.Config{
		Region: mototest.Region, BaseEndpoint: aws.String(mototest.Start(t)), Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
	}
	client := awss3.NewFromConfig(config, func(o *awss3.Options) { o.UsePathStyle = true })
	_, err := client.CreateBucket(t.Context(), &awss3.CreateBucketInput{
		Bucket: aws.String(bucket), CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: mototest.Region},
	})
	check.Must(t, err)
	t.Run("only what no revision names has a tag", func(t *testing.T) {
		t.Parallel()
		store, ref := s3.New(config, bucket), uploadtest.NewRef()
		grant, err := store.Grant(t.Context(), ref, "")
		check.Must(t, err)
		put, err := http.NewRequestWithContext(t.Context(), http.MethodPut, grant.URL, strings.NewReader("a tarball"))
		check.Must(t, err)
		for name, value := range grant.Headers {
			put.Header.Set(name, value)
		}
		answer, err := http.DefaultClient.Do(put)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", answer, err)
		}
		check.Must(t, answer.Body.Close())
		tags := func() int {
			found, err := client.GetObjectTagging(t.Context(), &awss3.GetObjectTaggingInput{Bucket: aws.String(bucket), Key: aws.String(s3.Prefix + ref.Path())})
			check.Must(t, err)
			return len(found.TagSet)
		}
		before := tags()
		if err := store.Keep(t.Context(), ref); err != nil || before != 1 || tags() != 0 {
			t.Errorf("%d tags before, %d after, %v", before, tags(), err)
		}
	})
	// The tests of the suite have deployments of their own.
	uploadtest.Run(t, func(*testing.T) (uploadtest.Store, string) { return opened{s3.New(config, bucket), client}, "" })
}
