// Tells which of the calls that were recorded the role of their function does not allow.
//
// Usage: node check.mjs POLICIES CALLS; the first is what infra/sam/policies.py prints, the second
// what a recorder has written.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const { runSimulation } = createRequire(new URL('../../../../.tools/iam/package.json', import.meta.url))('@cloud-copilot/iam-simulate')

const account = '000000000000'

// The simulator ignores keys of conditions that have a variable part, such as
// kms:EncryptionContext:<name>, unless they are about tags of the principal, which every request
// may have. So such keys are called that, in policies and in requests.
const variable = /^(kms:EncryptionContext:|aws:(Resource|Request)Tag\/)/
const rename = (keys) => Object.fromEntries(Object.entries(keys).map(([key, value]) => [variable.test(key) ? `aws:PrincipalTag/${key}` : key, value]))

// Keys of conditions that have several values.
const lists = new Set(['dynamodb:LeadingKeys'])
const listed = (keys) => Object.fromEntries(Object.entries(keys).map(([key, value]) => [key, lists.has(key) ? [value] : value]))

function renamed(document) {
  const statements = document.Statement.map((statement) => ({
    ...statement,
    ...(statement.Condition && { Condition: Object.fromEntries(Object.entries(statement.Condition).map(([test, keys]) => [test, rename(keys)])) })
  }))
  return { ...document, Statement: statements }
}

async function refusal(call, { roles, resources }) {
  const role = roles[call.function]
  const resourcePolicy = resources[call.resource]
  if (!role) return 'there is no such function'
  const response = await runSimulation({
    request: {
      principal: `arn:aws:iam::${account}:role/${call.function}`, action: call.action,
      resource: { resource: call.resource, accountId: account }, contextVariables: listed(rename(call.context ?? {}))
    },
    identityPolicies: role.policies.map((policy, n) => ({ name: String(n), policy: renamed(policy) })),
    permissionBoundaryPolicies: [{ name: 'boundary', policy: renamed(role.boundary) }],
    ...(resourcePolicy && { resourcePolicy: renamed(resourcePolicy) }),
    serviceControlPolicies: [], resourceControlPolicies: []
  }, {})
  if (response.resultType === 'error') return JSON.stringify(response.errors)
  return response.overallResult === 'Allowed' ? undefined : response.overallResult
}

// Returns what a call is about.
export function subject(call) {
  const partition = call.context?.['dynamodb:LeadingKeys']
  return partition ? `${call.resource}, partition ${partition}` : call.resource
}

// Returns a sentence for each call that IAM would refuse.
export async function refusals(policies, calls) {
  const found = []
  for (const call of calls) {
    const why = await refusal(call, policies)
    if (why) found.push(`${call.function} may not ${call.action} with ${subject(call)}: ${why}`)
  }
  return found
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [policies, calls] = process.argv.slice(2).map((file) => readFileSync(file, 'utf8'))
  const distinct = [...new Set(calls.split('\n').filter(Boolean))].map((line) => JSON.parse(line))
  const found = await refusals(JSON.parse(policies), distinct)
  for (const sentence of found) console.error(sentence)
  const silent = Object.keys(JSON.parse(policies).roles).filter((name) => !distinct.some((call) => call.function === name))
  console.log(`permissions: ${distinct.length} different calls; nothing was asked by: ${silent.join(', ') || 'no function'}`)
  process.exitCode = found.length > 0 || distinct.length === 0 ? 1 : 0
}
