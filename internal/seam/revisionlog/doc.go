// Package revisionlog is the seam to the output of revisions: what a build printed, and what an
// agent prints while it runs.
//
// A log is a sequence of lines. Who writes them is the builder's and the compute target's own
// business, so the seam is about reading, and about adding lines that were printed out of reach, at
// a listener: package revisionlog/files on one machine, CloudWatch Logs on AWS, an agent host for
// functions that run beside one. Each line has an ID from which a reader goes on, in either
// direction, also in another process, a day later, and when older lines were dropped meanwhile.
package revisionlog
