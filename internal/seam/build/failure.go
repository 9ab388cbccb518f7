package build

import "fmt"

// Failure is an end of a build that the repository, or what it asks for, is to blame for. It
// becomes the Result of the build; any other error is the builder's own trouble.
type Failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// Fail makes a Failure.
func Fail(reason, format string, args ...any) *Failure {
	return &Failure{reason, fmt.Sprintf(format, args...)}
}
