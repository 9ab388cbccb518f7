// Package revisionlog is the seam to the output of revisions: the output of a build, and the
// output of a running agent.
//
// A log is a sequence of lines. How they are written is the business of the builder and of the
// compute target. So the seam is about reading, and about adding lines that were printed
// elsewhere, at a listener. Its implementations are package revisionlog/files on one machine,
// CloudWatch Logs on AWS, and an agent host for functions that run beside one. Each line has
// an ID from which a reader can continue, in either direction, also in another process, a day
// later, and when older lines were dropped meanwhile.
package revisionlog
