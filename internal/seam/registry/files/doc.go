// Package files is the registry of one machine. It keeps images as files, and serves them by
// the OCI distribution protocol. Package ociserver implements the HTTP part of the protocol; the
// files are this package's work, because the stores of that library keep images in memory only.
//
// A repository is a directory of its own, which shares nothing with other repositories: blobs
// by digest, a media type for each manifest, a digest for each tag. A client finds there
// nothing that belongs to another deployment, and the directory is removed with its
// deployment. A blob is written under another name, and gets its own name when it is complete
// and on the disk.
//
// A client with a token gets access to the one repository that the token names. Keep removes
// the blobs that no kept image has, when no client has asked for them for a day: a client that
// was told that a layer is here does not send it again.
package files
