// Package webhook reports events to addresses outside Slipway. It sends each event as a JSON
// message by POST to the addresses that a workspace has registered. Their messages are signed as
// Standard Webhooks (standardwebhooks.com) defines. Delivery is at least once while attempts
// remain.
//
// Terms: a Webhook is an address, the event types that it wants, and the secret that signs its
// messages. A Message is a notification to a URL that is not a registered webhook. A Delivery is a
// message on its way to an address; later it is the log entry that records the result.
//
// The life of a delivery:
//
//  1. Notify or Send adds the delivery to the transaction that stores the reported change: both are
//     stored or neither is. The commit then starts the delivery's workflow. In a process for which
//     no client waits (Sending), it makes the first attempt itself, and starts the workflow only
//     if this attempt fails.
//  2. webhook.asl.json calls Task with ids. Task reads the delivery and its webhook, sends the
//     message and stores the outcome. A 2xx answer is success. After any other answer, or no
//     answer, the machine waits for the next attempt: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h
//     later, each with some jitter. The machine waits for at most 6 min. Before a longer pause the
//     workflow ends, so that failing messages do not use up the open executions of an account.
//     Rescue starts the workflow of the next round when the attempt is due: 2 min (the lease) and
//     at most the interval of the passes of reconcile later.
//  3. If a process dies, the engine resumes its workflows, and Rescue finds overdue deliveries. A
//     message may arrive twice, but with the same webhook-id each time.
//  4. A webhook is disabled at once after a 410 answer, and when its attempts have failed for
//     five days. The audit log records it.
//
// Security: addresses are checked when they are stored and when they are dialed (package outbound).
// Redirects are not followed, the time and size of an answer are bounded, and only the status of an
// answer is stored. Secrets are sealed, shown once, and never part of a workflow's input. After a
// secret is replaced, the old secret also signs for a day.
//
// Another package notifies a URL like this: check the URL with CheckURL, make a Message, and join
// the Outbox that Send returns to the transaction that stores the reported change. The message has
// webhook-id and webhook-timestamp headers but no signature, because its receiver has no secret.
//
// Start reading at Store.Task. The states and their transition table are in delivery.go.
package webhook
