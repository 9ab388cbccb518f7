package build

import "fmt"

// Failure is the error of a build that failed because of the repository, or because of
// something that the repository asks for. It becomes the Result of the build. Any other error
// is a fault of the builder itself.
type Failure struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// Fail makes a Failure.
func Fail(reason, format string, args ...any) *Failure {
	return &Failure{reason, fmt.Sprintf(format, args...)}
}
