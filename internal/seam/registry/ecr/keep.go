package ecr

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/slipway-run/slipway/internal/seam/registry"
)

const (
	// lull is the least age, since its push, of an image that is removed. It is longer than
	// the life of a token, so that a client that pushes an image can name it.
	lull = 24 * time.Hour
	// removedAtOnce is how many images one request removes at most.
	removedAtOnce = 100
)

// Keep removes the images that were pushed a while ago and are not kept. ECR itself keeps the
// images that a kept index names, and removes layers that no image has.
func (r *Registry) Keep(ctx context.Context, ref registry.Ref, images []string) error {
	kept := make([]string, len(images))
	for i, image := range images {
		var err error
		if kept[i], err = registry.Reference(image); err != nil {
			return err
		}
	}
	old, err := r.old(ctx, ref, kept)
	if err != nil {
		return fmt.Errorf("look for images: %w", err)
	}
	for page := range slices.Chunk(old, removedAtOnce) {
		if err := r.remove(ctx, ref, page); err != nil {
			return fmt.Errorf("remove images: %w", err)
		}
	}
	return nil
}

// old returns the images that may be removed.
func (r *Registry) old(ctx context.Context, ref registry.Ref, kept []string) ([]types.ImageIdentifier, error) {
	var found []types.ImageIdentifier
	pages := ecr.NewDescribeImagesPaginator(r.images, &ecr.DescribeImagesInput{RepositoryName: r.nameOf(ref)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, unlessGone(err)
		}
		for _, image := range page.ImageDetails {
			named := slices.Contains(kept, aws.ToString(image.ImageDigest)) || slices.ContainsFunc(image.ImageTags, func(tag string) bool { return slices.Contains(kept, tag) })
			if !named && r.cfg.Now().Sub(aws.ToTime(image.ImagePushedAt)) >= lull {
				found = append(found, types.ImageIdentifier{ImageDigest: image.ImageDigest})
			}
		}
	}
	return found, nil
}

func (r *Registry) remove(ctx context.Context, ref registry.Ref, images []types.ImageIdentifier) error {
	removed, err := r.images.BatchDeleteImage(ctx, &ecr.BatchDeleteImageInput{RepositoryName: r.nameOf(ref), ImageIds: images})
	if err != nil {
		return unlessGone(err)
	}
	for _, failure := range removed.Failures {
		switch failure.FailureCode {
		case types.ImageFailureCodeImageNotFound, types.ImageFailureCodeImageReferencedByManifestList:
		default:
			return fmt.Errorf("%s: %s", failure.FailureCode, aws.ToString(failure.FailureReason))
		}
	}
	return nil
}
