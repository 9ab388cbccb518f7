// Package s3 keeps uploads in an S3 bucket. The addresses that it grants are presigned
// PutObjects: S3 accepts them from every holder, for the object and the headers that they were
// signed for, until they expire. S3 does not limit the size of the upload. The code that
// builds a tarball asks for its size first.
//
// An upload has a tag until a build of it begins. The lifecycle of the bucket removes objects
// with the tag after a day, so an upload that no revision names, or that is too large, goes by
// itself.
package s3

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Prefix begins the keys of all uploads.
const Prefix = "sources/"

// TagKey and TagValue are the tag of an upload that no revision has named.
const TagKey, TagValue = "slipway", "unnamed"

// Store implements upload.Store.
type Store struct {
	bucket  string
	client  *s3.Client
	presign *s3.PresignClient
}

var _ upload.Store = (*Store)(nil)

// New returns a store. It sends no request.
func New(config aws.Config, bucket string) *Store {
	client := s3.NewFromConfig(config, func(o *s3.Options) {
		// A checksum of content that does not exist yet would be signed with the address, and
		// would then be required of the uploaded content.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.UsePathStyle = o.BaseEndpoint != nil // an emulator has no names for buckets
	})
	return &Store{bucket, client, s3.NewPresignClient(client)}
}

// Grant implements upload.Store. The address is S3's own.
func (s *Store) Grant(ctx context.Context, ref upload.Ref, _ string) (upload.Grant, error) {
	signed, err := s.presign.PresignPutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(s.bucket), Key: aws.String(Prefix + ref.Path()), ContentType: aws.String(upload.ContentType),
		IfNoneMatch: aws.String("*"), // an uploaded tarball stays as it is
		Tagging:     aws.String(TagKey + "=" + TagValue),
	}, s3.WithPresignExpires(upload.Lifetime))
	if err != nil {
		return upload.Grant{}, fmt.Errorf("presign upload of deployment %s: %w", ref.Deployment, err)
	}
	grant := upload.Grant{URL: signed.URL, Headers: map[string]string{}}
	for name, values := range signed.SignedHeader {
		if name != "Host" {
			grant.Headers[name] = values[0]
		}
	}
	return grant, nil
}

// Keep has the bucket keep a tarball that a revision names. It does nothing for a tarball that
// does not exist or that is too large to be built.
func (s *Store) Keep(ctx context.Context, ref upload.Ref) error {
	key := aws.String(Prefix + ref.Path())
	objects, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(s.bucket), Prefix: key, MaxKeys: aws.Int32(1)})
	if err != nil {
		return fmt.Errorf("look at the upload of deployment %s: %w", ref.Deployment, err)
	}
	if len(objects.Contents) == 0 || aws.ToInt64(objects.Contents[0].Size) > upload.MaxSize {
		return nil
	}
	if _, err := s.client.DeleteObjectTagging(ctx, &s3.DeleteObjectTaggingInput{Bucket: aws.String(s.bucket), Key: key}); err != nil {
		return fmt.Errorf("keep the upload of deployment %s: %w", ref.Deployment, err)
	}
	return nil
}

// URI is the address of the tarball for a builder.
func (s *Store) URI(ref upload.Ref) string { return "s3://" + s.bucket + "/" + Prefix + ref.Path() }

// List implements upload.Store.
func (s *Store) List(ctx context.Context, workspace, deployment string) (refs []upload.Ref, err error) {
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: aws.String(s.bucket), Prefix: aws.String(Prefix + upload.Of(workspace, deployment)),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			if ref, ok := upload.Parse(strings.TrimPrefix(aws.ToString(object.Key), Prefix)); ok {
				refs = append(refs, ref)
			}
		}
	}
	return refs, nil
}

// Erase implements upload.Store. Upload addresses stay valid afterwards. An object that a client
// uploads there has the tag by which the bucket removes it.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) error {
	return upload.Prune(ctx, s, workspace, deployment, func(upload.Ref) bool { return false })
}

// atOnce is how many objects one request erases at most.
const atOnce = 1000

// Remove implements upload.Store.
func (s *Store) Remove(ctx context.Context, _, _ string, refs []upload.Ref) error {
	for chunk := range slices.Chunk(refs, atOnce) {
		objects := make([]types.ObjectIdentifier, len(chunk))
		for i, ref := range chunk {
			objects[i].Key = aws.String(Prefix + ref.Path())
		}
		done, err := s.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: aws.String(s.bucket), Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return err
		}
		if len(done.Errors) > 0 {
			failed := done.Errors[0]
			return fmt.Errorf("%d objects are left, %s: %s", len(done.Errors), aws.ToString(failed.Key), aws.ToString(failed.Message))
		}
	}
	return nil
}
