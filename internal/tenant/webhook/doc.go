// Package webhook tells the outside world what happened: by POST of a JSON message to an address that a workspace has named, signed as Standard Webhooks
// says (standardwebhooks.com), at least once.
//
// The words. A Webhook is an address with the types of events that it wants, and the secret that signs what it is sent. A Message is one thing that it is
// told. A Delivery is the message on its way to one address, and afterwards the entry of what became of it in the log of its webhook.
//
// The life of a delivery:
//
//  1. It is written in the transaction of what it tells of (Notify, Send), so that neither is there without the other, and its workflow is started.
//  2. webhook.asl.json calls Task with ids: it reads everything anew, sends, and notes what came of it. An answer of 2xx is success. After any other, and after
//     none, the machine waits until the next attempt is due: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h later, each with some jitter.
//  3. What a dead process left half done is resumed by the engine, or found by Rescue when it is overdue. A message may arrive twice, but its webhook-id
//     is the same each time.
//  4. After 410 a webhook is disabled at once, and when nothing got through to it for five days. The audit log says so.
//
// What keeps it safe: addresses are checked when they are stored and when they are dialed (package outbound); redirects are not followed, the time and
// the size of an answer are bounded, and nothing of an answer but its status is kept. Secrets are sealed, shown once, and in no workflow's input; while a
// secret is replaced, the old one signs too for a day.
//
// For another package that tells an address something: make a Message with its URL, add the write of Send to the transaction of what it tells of, and call begin
// when that has succeeded. The message is sent with webhook-id and webhook-timestamp and without a signature, as nobody has a secret to check it. CheckURL says
// beforehand whether the address may be called.
//
// Start reading at Store.Task. States stand beside their transition table in delivery.go.
package webhook
