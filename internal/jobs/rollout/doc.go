// Package rollout performs the steps of the rollout, restart and teardown machines
// (infra/statemachines).
//
// Each step is given only ids. It reads the deployment and the revision again, acts, and writes
// under the condition that nothing changed in between; so it may be repeated at any time, by a
// retry, after a crash, or by a second delivery. The machine orders, waits and retries.
// Package revision decides what a status may become; package deployment decides which revision
// goes next.
//
// A failure that a person can correct is written on the revision with a reason and a message,
// and the step answers Fail. Any other error is returned: the machine retries the step and
// finally calls Fail itself, so that no revision stays in a status that is not terminal.
package rollout
