//go:build moto

package ecr_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsecr "github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/registry/ecr"
	"github.com/slipway-run/slipway/internal/seam/registry/registrytest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/mototest"
)

const (
	host   = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
	prefix = host + "/slipway-test"
	role   = "arn:aws:iam::123456789012:role/slipway-push"
)

// account is a registry in an account of moto.
type account struct {
	*ecr.Registry
	images *awsecr.Client
	// ahead is how many nanoseconds the registry's clock is ahead.
	ahead atomic.Int64

	mu sync.Mutex
	// assumed are the requests in which the role was assumed. signers are the signers of the
	// requests for tokens.
	assumed []url.Values
	signers []string
	// pushed is by how many seconds the registry's clock was ahead when an image was pushed.
	pushed map[string]float64
}

// Do notes the data that moto ignores: policies of sessions, and the signer of a request for a
// token. Images get the time of the registry's clock as the time of their push.
func (a *account) Do(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	target := r.Header.Get("X-Amz-Target")
	if strings.HasSuffix(target, ".GetAuthorizationToken") {
		a.signers = append(a.signers, r.Header.Get("Authorization"))
	}
	if target == "" && r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		asked, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, err
		}
		a.assumed = append(a.assumed, asked)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || !strings.HasSuffix(target, ".DescribeImages") || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	return answer, a.date(answer)
}

// date moves the times of images in an answer.
func (a *account) date(answer *http.Response) error {
	defer answer.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err
	}
	for _, detail := range body["imageDetails"].([]any) {
		image := detail.(map[string]any)
		image["imagePushedAt"] = image["imagePushedAt"].(float64) + a.pushed[image["imageDigest"].(string)]
	}
	text, err := json.Marshal(body)
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Del("Content-Length")
	return err
}

func newAccount(t *testing.T, endpoint string) *account {
	t.Helper()
	a := &account{pushed: map[string]float64{}}
	cfg := aws.Config{
		Region: mototest.Region, BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""), HTTPClient: a,
	}
	a.images = awsecr.NewFromConfig(cfg)
	var err error
	a.Registry, err = ecr.New(ecr.Config{
		AWS: cfg, Prefix: prefix, Role: role, Now: func() time.Time { return clock.System().Add(time.Duration(a.ahead.Load())) },
	})
	check.Must(t, err)
	return a
}

func name(repository string) *string {
	return aws.String(strings.TrimPrefix(repository, host+"/"))
}

// push puts an image into a repository. moto needs only the manifest.
func (a *account) push(t *testing.T, grant registry.Grant, tag string) string {
	t.Helper()
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "sha256:" + hex.EncodeToString(sum[:])
	}
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":2,"digest":%q},"layers":[]}`, digest(rand.Text()))
	of := digest(manifest)
	a.mu.Lock()
	a.pushed[of] = float64(a.ahead.Load()) / float64(time.Second)
	a.mu.Unlock()
	// An image without tags stays in ECR, but not in moto: each image gets a tag of its own,
	// too.
	for _, tag := range []string{strings.TrimPrefix(of, "sha256:"), tag} {
		_, err := a.images.PutImage(t.Context(), &awsecr.PutImageInput{RepositoryName: name(grant.Repository), ImageTag: &tag, ImageManifest: &manifest, ImageDigest: &of})
		check.Must(t, err)
	}
	return of
}

func (a *account) has(t *testing.T, ref registry.Ref, digest string) bool {
	t.Helper()
	repository, err := a.Repository(t.Context(), ref)
	check.Must(t, err)
	found, err := a.images.BatchGetImage(t.Context(), &awsecr.BatchGetImageInput{RepositoryName: name(repository), ImageIds: []types.ImageIdentifier{{ImageDigest: &digest}}})
	check.Must(t, err)
	return len(found.Images) > 0
}

func TestMotoConformance(t *testing.T) {
	t.Parallel()
	endpoint := mototest.Start(t)
	registrytest.Run(t, func(t *testing.T) registrytest.World {
		a := newAccount(t, endpoint)
		return registrytest.World{Registry: a, Push: a.push, Has: a.has, Age: func(*testing.T) { a.ahead.Add(int64(25 * time.Hour)) }}
	})
}

// TestMotoTokensAreNarrow checks how the role is assumed from which tokens come.
func TestMotoTokensAreNarrow(t *testing.T) {
	t.Parallel()
	a, ref := newAccount(t, mototest.Start(t)), registrytest.NewRef()
	grant, err := a.Push(t.Context(), ref)
	check.Must(t, err)
	// The tokens of moto expired in 2015. ECR's tokens are valid for longer than the role is.
	if rest := time.Until(grant.Expires); grant.Username != "AWS" || grant.Token == "" || grant.Expires.IsZero() || rest > registry.TokenLife {
		t.Errorf("the grant is for %q, for %s", grant.Username, rest)
	}
	if len(a.assumed) != 1 || len(a.signers) != 1 {
		t.Fatalf("the role was assumed %d times, for %d tokens", len(a.assumed), len(a.signers))
	}
	asked := a.assumed[0]
	if asked.Get("RoleArn") != role || asked.Get("RoleSessionName") != ref.Deployment || asked.Get("DurationSeconds") != "3600" {
		t.Errorf("the role was assumed with %v", asked)
	}
	var policy any
	check.Must(t, json.Unmarshal([]byte(asked.Get("Policy")), &policy))
	var actions []any
	for _, action := range ecr.HolderActions {
		actions = append(actions, action)
	}
	want := map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{"Effect": "Allow", "Action": actions, "Resource": "arn:aws:ecr:eu-central-1:123456789012:repository/slipway-test/" + ref.Workspace + "/" + ref.Deployment},
		map[string]any{"Effect": "Allow", "Action": []any{"ecr:GetAuthorizationToken"}, "Resource": "*"},
	}}
	if diff := cmp.Diff(want, policy); diff != "" {
		t.Errorf("the policy of the session (-want +got):\n%s", diff)
	}
	if len(asked.Get("Policy")) > 2048 {
		t.Errorf("the policy has %d characters, of which a session takes 2048", len(asked.Get("Policy")))
	}
	// The role's session requests the token, not the function.
	if strings.Contains(a.signers[0], "Credential=test/") {
		t.Errorf("the token was asked for with %s", a.signers[0])
	}
	found, err := a.images.DescribeRepositories(t.Context(), &awsecr.DescribeRepositoriesInput{RepositoryNames: []string{*name(grant.Repository)}})
	check.Must(t, err)
	if made := found.Repositories[0]; !made.ImageScanningConfiguration.ScanOnPush || made.ImageTagMutability != types.ImageTagMutabilityMutable {
		t.Errorf("the repository is %+v", made)
	}
}
