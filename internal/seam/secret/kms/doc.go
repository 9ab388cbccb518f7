// Package kms protects secrets with data keys that AWS KMS wraps: the counterpart of package
// secret/keyfile for functions.
//
// A data key is 32 random bytes that KMS makes. The table keeps it wrapped, under an encryption
// context that names the installation: a wrapped key that was copied elsewhere does not open. A
// process asks KMS to unwrap it once, and seals, opens and fingerprints by itself.
//
// The first process of an installation makes data key 1. When several start at once, the table
// decides whose key is kept, and the others read it. Rotate adds a data key: the newest seals, all
// open, and a process that meets a text of a key which came after its start reads the keys anew.
// Fingerprints that are tokens stay those of the first key; those by which something is looked up
// move to the newest, see package envelope. KMS's own rotation of its key's material needs nothing
// here: KMS unwraps what the older material wrapped.
package kms
