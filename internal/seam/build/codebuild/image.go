package codebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
)

// tagOf returns the image tag of an attempt. Tags of the repository are immutable, so a tag
// that may have been pushed is not used again.
func tagOf(revision string, attempt int64) string {
	if attempt == 1 {
		return revision
	}
	return fmt.Sprintf("%s-%d", revision, attempt)
}

// imagesPage is how many images ECR deletes with one request.
const imagesPage = 100

// deleteImages deletes the images that the attempts have pushed, if there are any.
func (b *Builder) deleteImages(ctx context.Context, revision string, attempts int64) error {
	_, name, _ := strings.Cut(b.cfg.ECRRepository, "/")
	var ids []types.ImageIdentifier
	for attempt := range attempts {
		ids = append(ids, types.ImageIdentifier{ImageTag: aws.String(tagOf(revision, attempt+1))})
	}
	for page := range slices.Chunk(ids, imagesPage) {
		answer, err := b.images.BatchDeleteImage(ctx, &ecr.BatchDeleteImageInput{RepositoryName: aws.String(name), ImageIds: page})
		if _, missing := errors.AsType[*types.RepositoryNotFoundException](err); missing {
			return nil
		}
		if err != nil {
			return err
		}
		for _, failure := range answer.Failures {
			if failure.FailureCode != types.ImageFailureCodeImageNotFound {
				return fmt.Errorf("delete image %s: %s", aws.ToString(failure.ImageId.ImageTag), aws.ToString(failure.FailureReason))
			}
		}
	}
	return nil
}
