// Tells which calls roles do not allow although they need them, and which calls they allow that
// they must not.
//
// Usage: node asked.mjs FILE; the file is what infra/sam/deployer.py or infra/sam/elsewhere.py
// prints.
import { readFileSync } from 'node:fs'

import { refusals, subject } from './check.mjs'

const { policies, calls, forbidden } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const distinct = [...new Set(calls.map((call) => JSON.stringify(call)))].map((line) => JSON.parse(line))
const found = await refusals(policies, distinct)
for (const call of forbidden) {
  const [refusal] = await refusals(policies, [call])
  if (!refusal) found.push(`${call.function} may ${call.action} with ${subject(call)}`)
  else if (!refusal.endsWith('Denied')) found.push(refusal) // it is no call
}
for (const sentence of found) console.error(sentence)
console.log(`permissions: ${distinct.length} different calls are needed, ${forbidden.length} must not be possible`)
process.exitCode = found.length > 0 || distinct.length === 0 ? 1 : 0
