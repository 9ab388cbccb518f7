// Package standalone is the one-machine server: the same handlers, domain and state machines as on
// AWS, over SQLite, an in-process workflow engine and agents that are child processes. All of
// its data is in one data directory:
//
//	slipway.db          all records (SQLite, WAL)
//	secret.key          the key that seals secrets, mode 0600
//	credentials.json    base_url, api_key, tenant_id of the first workspace, mode 0600; written
//	                    when the server is ready
//	builds/ agents/     built trees with the builds' caches; homes of the running agents
//	logs/               build and agent output of each revision
//	lock                held while a server uses the directory
package standalone
