package build

import "regexp"

// credentials are those in the addresses of a variable's value.
var credentials = regexp.MustCompile(`://[^/\s,|@]+(?::[^/\s,|]*)?@`)

// WithoutCredentials takes user names and passwords out of the addresses in a variable, as what is
// handed to a command of a tenant is the tenant's.
func WithoutCredentials(variable string) string { return credentials.ReplaceAllString(variable, "://") }
