// Tells which calls of a deployment the deploying role does not allow, and which calls it allows that it must not.
//
// Usage: node deployer.mjs FILE; the file is what infra/sam/deployer.py prints.
import { readFileSync } from 'node:fs'

import { refusals } from './check.mjs'

const { policies, calls, forbidden } = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const distinct = [...new Set(calls.map((call) => JSON.stringify(call)))].map((line) => JSON.parse(line))
const found = await refusals(policies, distinct)
for (const call of forbidden) {
  const [refusal] = await refusals(policies, [call])
  if (!refusal) found.push(`the deploying role may ${call.action} with ${call.resource}`)
  else if (!refusal.endsWith('Denied')) found.push(refusal) // it is no call
}
for (const sentence of found) console.error(sentence)
console.log(`deploying role: ${distinct.length} different calls are allowed, ${forbidden.length} are not`)
process.exitCode = found.length > 0 || distinct.length === 0 ? 1 : 0
