// Package idempotency keeps the first answer to a request that its client may repeat, under a key
// that the client chose.
//
// A key is claimed before the request is executed, by a write under the condition that no
// other request holds it. So of many equal requests, at any processes, one is executed. A
// claim lasts for [Lease]: if its process died, the next repetition takes it over. The answer
// is stored over the claim and stays for [Kept]. It may contain secrets, so it is sealed
// together with the fingerprint of its request. An attacker could use the fingerprint to guess
// secrets in the request.
//
// If a deployment encrypts its data, the answers of its agent server are among these data: they are
// not sealed, but name the deployment (Request.Encrypted), so that cipher.Table has the
// deployment's own handlers encrypt them.
//
// A request that is one transaction answers its key in that transaction ([Attempt.AnswerWrite]). So
// it is never executed twice, even if the process dies before it could answer. An answer that is
// shown only once must not be stored: the transaction stores another answer.
package idempotency
