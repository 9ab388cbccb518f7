// Package rollout performs the steps of the rollout, restart and teardown machines
// (infra/statemachines).
//
// Each step is told ids only. It reads the deployment and the revision anew, acts, and writes under
// the condition that nothing changed in between; so it may be repeated at any time, by a retry,
// after a crash, or by a second delivery. The machine orders, waits and retries; what a status may
// become is decided by package revision, who goes next by package deployment.
//
// A failure that a person can mend is written on the revision with a reason and a message, and the
// step answers Fail. Any other error is returned: the machine retries it and at last calls Fail
// itself, so that no revision rests in a status that is not terminal.
package rollout
