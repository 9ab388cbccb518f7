// Package kms protects secrets with data keys that AWS KMS wraps: the counterpart of package
// secret/keyfile for functions.
//
// A data key is 32 random bytes that KMS makes. The table keeps it wrapped, under an
// encryption context that names the installation: a wrapped key that was copied to another
// installation does not open. A process asks KMS once to unwrap it, and then seals, opens and
// fingerprints by itself.
//
// The first process of an installation makes data key 1. When several processes start at once,
// the table decides whose key is kept, and the others read it. Rotate adds a data key: the
// newest key seals, all keys open. A process that meets a text of a key that was added after
// its start reads the keys again. Fingerprints that are tokens stay those of the first key.
// Fingerprints by which records are looked up move to the newest key, see package envelope.
// KMS's own rotation of its key's material needs no action here: KMS unwraps what the older
// material wrapped.
package kms
