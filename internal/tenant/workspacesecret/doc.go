// Package workspacesecret holds the secrets that a workspace keeps once, for any number of
// deployments: each is a name and values under keys. Deployments refer to a value by name and key,
// and what a release is given is read when it is made, so that another value needs no new revision.
//
// That a deployment has referred to a secret is noted beside the secret, in the transaction that
// makes the reference, until the deployment is erased. A note says "may": whether a deployment
// still refers to a key, Config.Referred is asked. Making a reference counts the secret's version
// up, so that whoever takes a secret or a key away and has looked for references before this one
// looks again, and the two are never both done.
//
// Values that were replaced or taken away are kept for one purpose, to hide them in what agents
// have printed when they had them: the newest of them, as many as maxFormer and maxFormerSize say.
// So a secret that is deleted stays, without its keys, as long as there are deployments that have
// had its values; nobody sees it, and its name is free.
package workspacesecret
