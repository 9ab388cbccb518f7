// Package files is the registry of one machine: it keeps images as files, and serves them by the
// OCI distribution protocol, of which package ociserver is the HTTP.
//
// A repository is a directory of its own, which nothing is shared with: blobs by digest, for each
// manifest its media type, for each tag a digest. Nobody finds there what another deployment has,
// and with the deployment its directory goes. A blob is written under another name, and gets its
// own once it is whole and on the disk.
//
// Whoever comes with a token is let into the one repository that it names. What no kept image has
// is removed by Keep when nobody has asked for it for a day: a client that was told that a layer is
// here does not send it again.
package files
