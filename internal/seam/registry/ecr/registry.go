package ecr

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/registry"
)

// HolderActions are the actions that the holder of a token does with the one repository.
var HolderActions = []string{
	"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:CompleteLayerUpload", "ecr:DescribeImages", "ecr:GetDownloadUrlForLayer", "ecr:InitiateLayerUpload", "ecr:PutImage",
	"ecr:UploadLayerPart",
}

// Config holds the settings of a Registry.
type Config struct {
	AWS aws.Config
	// Prefix begins the names of all repositories: the account's registry, and a path that
	// separates them from other repositories.
	Prefix string
	// Role may push to those repositories.
	Role string
	Now  clock.Clock
}

// Registry implements registry.Registry.
type Registry struct {
	cfg    Config
	images *ecr.Client
	roles  *sts.Client
	// host is the account's registry, path the beginning of the names of repositories there.
	host, path string
}

var _ registry.Registry = (*Registry)(nil)

// New returns a registry.
func New(cfg Config) (*Registry, error) {
	host, path, ok := strings.Cut(cfg.Prefix, "/")
	if !ok || cfg.Role == "" {
		return nil, fmt.Errorf("open registry: %q is no beginning of repositories, or there is no role to push with", cfg.Prefix)
	}
	return &Registry{cfg: cfg, images: ecr.NewFromConfig(cfg.AWS), roles: sts.NewFromConfig(cfg.AWS), host: host, path: path}, nil
}

func (r *Registry) nameOf(ref registry.Ref) *string {
	return aws.String(r.path + "/" + ref.Workspace + "/" + ref.Deployment)
}

// Repository returns the prefix of the names of a deployment's images.
func (r *Registry) Repository(_ context.Context, ref registry.Ref) (string, error) {
	return r.host + "/" + *r.nameOf(ref), nil
}

// Push makes the repository and returns a token for it.
func (r *Registry) Push(ctx context.Context, ref registry.Ref) (registry.Grant, error) {
	created, err := r.make(ctx, ref)
	if err != nil {
		return registry.Grant{}, fmt.Errorf("make repository: %w", err)
	}
	narrowed, err := r.assume(ctx, ref, aws.ToString(created.RepositoryArn))
	if err != nil {
		return registry.Grant{}, fmt.Errorf("assume role: %w", err)
	}
	username, token, expires, err := r.token(ctx, narrowed)
	if err != nil {
		return registry.Grant{}, fmt.Errorf("get token: %w", err)
	}
	if until := narrowed.Expires; until.Before(expires) {
		expires = until
	}
	return registry.Grant{Repository: aws.ToString(created.RepositoryUri), Username: username, Token: token, Expires: expires}, nil
}

// make creates the repository unless it exists. Clients push the same tag again: tags can move.
func (r *Registry) make(ctx context.Context, ref registry.Ref) (types.Repository, error) {
	created, err := r.images.CreateRepository(ctx, &ecr.CreateRepositoryInput{
		RepositoryName: r.nameOf(ref), ImageTagMutability: types.ImageTagMutabilityMutable, ImageScanningConfiguration: &types.ImageScanningConfiguration{ScanOnPush: true},
	})
	if err == nil {
		return *created.Repository, nil
	}
	if _, ok := errors.AsType[*types.RepositoryAlreadyExistsException](err); !ok {
		return types.Repository{}, err
	}
	images, err := r.images.DescribeRepositories(ctx, &ecr.DescribeRepositoriesInput{RepositoryNames: []string{*r.nameOf(ref)}})
	if err != nil {
		return types.Repository{}, err
	}
	return images.Repositories[0], nil
}

// assume returns credentials of the role that are limited to one repository.
func (r *Registry) assume(ctx context.Context, ref registry.Ref, repository string) (aws.Credentials, error) {
	narrow, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []map[string]any{
		{"Effect": "Allow", "Action": HolderActions, "Resource": repository},
		// IAM knows no resource for this action.
		{"Effect": "Allow", "Action": []string{"ecr:GetAuthorizationToken"}, "Resource": "*"},
	}})
	if err != nil {
		return aws.Credentials{}, err
	}
	assumed, err := r.roles.AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &r.cfg.Role, RoleSessionName: &ref.Deployment, Policy: aws.String(string(narrow)), DurationSeconds: aws.Int32(int32(registry.TokenLife.Seconds())),
	})
	if err != nil {
		return aws.Credentials{}, err
	}
	c := assumed.Credentials
	return aws.Credentials{
		AccessKeyID: aws.ToString(c.AccessKeyId), SecretAccessKey: aws.ToString(c.SecretAccessKey), SessionToken: aws.ToString(c.SessionToken), CanExpire: true, Expires: aws.ToTime(c.Expiration),
	}, nil
}

// token returns the username and the password of a Docker login.
func (r *Registry) token(ctx context.Context, narrowed aws.Credentials) (username, password string, expires time.Time, err error) {
	given, err := r.images.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{}, func(o *ecr.Options) {
		o.Credentials = credentials.StaticCredentialsProvider{Value: narrowed}
	})
	if err != nil {
		return "", "", time.Time{}, err
	}
	if len(given.AuthorizationData) == 0 {
		return "", "", time.Time{}, errors.New("the answer has no token")
	}
	data := given.AuthorizationData[0]
	plain, err := base64.StdEncoding.DecodeString(aws.ToString(data.AuthorizationToken))
	if err != nil {
		return "", "", time.Time{}, fmt.Errorf("decode token: %w", err)
	}
	username, password, ok := strings.Cut(string(plain), ":")
	if !ok {
		return "", "", time.Time{}, errors.New("the token has no password")
	}
	return username, password, aws.ToTime(data.ExpiresAt), nil
}

// Erase removes the repository with all its images.
func (r *Registry) Erase(ctx context.Context, workspace, deployment string) error {
	name := r.nameOf(registry.Ref{Workspace: workspace, Deployment: deployment})
	_, err := r.images.DeleteRepository(ctx, &ecr.DeleteRepositoryInput{RepositoryName: name, Force: true})
	if err := unlessGone(err); err != nil {
		return fmt.Errorf("erase repository: %w", err)
	}
	return nil
}

// unlessGone returns nil for an error that says that there is no such repository.
func unlessGone(err error) error {
	if _, ok := errors.AsType[*types.RepositoryNotFoundException](err); ok {
		return nil
	}
	return err
}

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
	var images []types.ImageIdentifier
	pages := ecr.NewDescribeImagesPaginator(r.images, &ecr.DescribeImagesInput{RepositoryName: r.nameOf(ref)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, unlessGone(err)
		}
		for _, image := range page.ImageDetails {
			named := slices.Contains(kept, aws.ToString(image.ImageDigest)) || slices.ContainsFunc(image.ImageTags, func(tag string) bool { return slices.Contains(kept, tag) })
			if !named && r.cfg.Now().Sub(aws.ToTime(image.ImagePushedAt)) >= lull {
				images = append(images, types.ImageIdentifier{ImageDigest: image.ImageDigest})
			}
		}
	}
	return images, nil
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
