package stack

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

const (
	// connectTimeout is how long a connection may take to be made; inside a region it takes a
	// few milliseconds.
	connectTimeout = 3 * time.Second
	// callTimeout is the time after which an unanswered request is abandoned and sent again.
	callTimeout = 20 * time.Second
	// attempts is how often a request is sent that was throttled, lost, or met a fault of the
	// service.
	attempts = 5
)

// config is the configuration of all clients. A function has the values that the config module
// of the SDK would find out: the region and the credentials are in variables, for as long as
// the process lives.
func (e Environment) config() aws.Config {
	credentials := aws.Credentials{
		AccessKeyID: e.Get(variableAccessKey), SecretAccessKey: e.Get(variableSecretKey), SessionToken: e.Get(variableSessionToken),
		Source: "environment",
	}
	return aws.Config{
		Region: e.Get(variableRegion),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
		HTTPClient: awshttp.NewBuildableClient().
			WithTimeout(callTimeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
			WithTransportOptions(func(t *http.Transport) { t.TLSHandshakeTimeout = connectTimeout }),
		RetryMaxAttempts: attempts,
		ConfigSources:    []any{endpoints{e}},
	}
}

// endpoints returns the addresses of services that differ from the region's addresses:
// AWS_ENDPOINT_URL_<service>, as in all of AWS's tools.
type endpoints struct{ env Environment }

// GetServiceBaseEndpoint implements the interface that the SDK's clients look for among the sources
// of their configuration.
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (endpoint string, found bool, err error) {
	name := variableEndpoint + "_" + strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_").Replace(service))
	if endpoint = e.env.Get(name); endpoint == "" {
		endpoint = e.env.Get(variableEndpoint)
	}
	return endpoint, endpoint != "", nil
}
