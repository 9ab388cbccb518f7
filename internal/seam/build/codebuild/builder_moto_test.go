//go:build moto

package codebuild_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscodebuild "github.com/aws/aws-sdk-go-v2/service/codebuild"
	"github.com/aws/aws-sdk-go-v2/service/codebuild/types"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
	"github.com/slipway-run/slipway/internal/test/mototest"
)

// numbers turns the times in answers into numbers, because CodeBuild sends numbers. moto sends
// texts, which the SDK refuses.
type numbers struct{}

var textTime = regexp.MustCompile(`("(?:start|end)Time": ?)"[^"]*"`)

func (numbers) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	body = textTime.ReplaceAll(body, []byte("${1}1767268800"))
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return answer, err
}

// TestMotoLifeOfABuild tests everything that is possible with a CodeBuild that runs no
// commands: its builds succeed at the first look, without variables.
func TestMotoLifeOfABuild(t *testing.T) {
	t.Parallel()
	cfg := awsConfig(mototest.Start(t))
	cfg.HTTPClient = numbers{}
	builds, images, secrets := awscodebuild.NewFromConfig(cfg), ecr.NewFromConfig(cfg), secretsmanager.NewFromConfig(cfg)
	_, err := builds.CreateProject(t.Context(), &awscodebuild.CreateProjectInput{
		Name: aws.String(project), ServiceRole: aws.String("arn:aws:iam::123456789012:role/build"),
		Source: &types.ProjectSource{Type: types.SourceTypeNoSource, Location: aws.String("none")}, Artifacts: &types.ProjectArtifacts{Type: types.ArtifactsTypeNoArtifacts},
		Environment: &types.ProjectEnvironment{Type: types.EnvironmentTypeArmContainer, ComputeType: types.ComputeTypeBuildGeneral1Small, Image: aws.String("aws/codebuild/amazonlinux-aarch64-standard:3.0")},
	})
	check.Must(t, err)
	_, err = images.CreateRepository(t.Context(), &ecr.CreateRepositoryInput{RepositoryName: aws.String("slipway-test")})
	check.Must(t, err)
	b, err := codebuild.New(codebuild.Config{AWS: cfg, Table: fixtures.Table(t), NamePrefix: prefix, Project: project, ECRRepository: repository, Tools: layer})
	check.Must(t, err)
	spec := newSpec("https://git.test/a.git")
	spec.Credentials = "me:hunter2"
	wantState(t, b, spec.Revision, build.Absent)
	check.Must(t, b.Start(t.Context(), spec))
	secret, err := secrets.GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String(prefix + "-build-" + spec.Revision)})
	if err != nil || aws.ToString(secret.SecretString) != "me:hunter2" {
		t.Errorf("secret: got %v, %v", secret, err)
	}
	if got, err := b.Await(t.Context(), spec.Revision); err == nil || !strings.Contains(err.Error(), "has exported no image") {
		t.Errorf("Await: got %+v, %v", got, err)
	}
	left, err := secrets.ListSecrets(t.Context(), &secretsmanager.ListSecretsInput{})
	if err != nil || len(left.SecretList) > 0 {
		t.Errorf("secrets are left: %v, %v", left, err)
	}
	_, err = images.PutImage(t.Context(), &ecr.PutImageInput{
		RepositoryName: aws.String("slipway-test"), ImageTag: aws.String(spec.Revision),
		ImageManifest: aws.String(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},"layers":[]}`),
	})
	check.Must(t, err)
	for range 2 {
		check.Must(t, b.Remove(t.Context(), spec.Revision))
	}
	pushed, err := images.ListImages(t.Context(), &ecr.ListImagesInput{RepositoryName: aws.String("slipway-test")})
	if err != nil || len(pushed.ImageIds) > 0 {
		t.Errorf("images are left: %v, %v", pushed, err)
	}
	wantState(t, b, spec.Revision, build.Absent)
	ran, err := builds.ListBuildsForProject(t.Context(), &awscodebuild.ListBuildsForProjectInput{ProjectName: aws.String(project)})
	if err != nil || len(ran.Ids) != 1 {
		t.Errorf("builds: %v, %v", ran, err)
	}
}
