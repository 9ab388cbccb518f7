package codebuild

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	cb "github.com/aws/aws-sdk-go-v2/service/codebuild/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/repository"
)

func (b *Builder) secretName(revision string) string { return b.cfg.NamePrefix + "-build-" + revision }

// storeCredentials makes the secret of a build, or sets the value of the secret again.
func (b *Builder) storeCredentials(ctx context.Context, spec build.Spec, credentials string) error {
	name := aws.String(b.secretName(spec.Revision))
	var tags []types.Tag
	for _, tag := range [][2]string{
		{"slipway:stack", b.cfg.NamePrefix}, {"slipway:workspace", spec.Workspace},
		{"slipway:deployment", spec.Deployment}, {"slipway:revision", spec.Revision},
	} {
		tags = append(tags, types.Tag{Key: aws.String(tag[0]), Value: aws.String(tag[1])})
	}
	_, err := b.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: name, SecretString: aws.String(credentials), Description: aws.String("The credentials of a repository, while it is being built."), Tags: tags,
	})
	if _, exists := errors.AsType[*types.ResourceExistsException](err); exists {
		_, err = b.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: name, SecretString: aws.String(credentials)})
	}
	return err
}

// renewCredentials gives a build's secret a new value before CodeBuild reads the secret.
func (b *Builder) renewCredentials(ctx context.Context, spec build.Spec, note note, begun *cb.Build) error {
	if !note.secret || !inQueue(begun) {
		return nil
	}
	repo, err := repository.Parse(spec)
	if err != nil || !repo.Given() {
		return err
	}
	_, err = b.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(b.secretName(spec.Revision)), SecretString: aws.String(repo.Pair()),
	})
	if _, ended := errors.AsType[*types.ResourceNotFoundException](err); ended {
		return nil
	}
	return err
}

// deleteCredentials erases the secret at once.
func (b *Builder) deleteCredentials(ctx context.Context, revision string) error {
	_, err := b.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: aws.String(b.secretName(revision)), ForceDeleteWithoutRecovery: aws.Bool(true),
	})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return nil
	}
	return err
}
