// Package iam notes the calls that functions make to the services of AWS, as IAM sees them:
// the caller, the action, the resource and the keys that conditions can check.
//
// The emulated services check no credentials. The permissions of functions are checked
// afterwards: the notes of a run of the end-to-end tests are compared with the roles of the
// translated template (check.sh). A call that the role of its function does not allow fails
// that check.
package iam
