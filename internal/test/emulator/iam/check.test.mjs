// Plants a missing permission of each kind, and looks whether check.mjs tells of it.
import assert from 'node:assert/strict'
import test from 'node:test'

import { refusals } from './check.mjs'

const table = 'arn:aws:dynamodb:us-east-1:000000000000:table/slipway'
const key = 'arn:aws:kms:us-east-1:000000000000:key/Key'
const run = 'arn:aws:states:us-east-1:000000000000:execution:slipway-run'

const allow = (Action, Resource, Condition) => ({ Effect: 'Allow', Action, Resource, ...(Condition && { Condition }) })
const document = (...Statement) => ({ Version: '2012-10-17', Statement })

function policies() {
  return {
    roles: {
      Runs: {
        policies: [
          document(allow(['dynamodb:PutItem', 'dynamodb:Query'], [table, `${table}/index/*`])),
          document(allow(['kms:Decrypt'], key, { StringEquals: { 'kms:EncryptionContext:slipway': 'data key' } }), allow(['states:StopExecution'], `${run}:*`))
        ],
        boundary: document(allow('*', '*'))
      }
    },
    // A key leaves it to the policies of its account only where it says so.
    resources: { [key]: document({ ...allow('kms:*', '*'), Principal: { AWS: 'arn:aws:iam::000000000000:root' } }) }
  }
}

const calls = [
  { function: 'Runs', action: 'dynamodb:PutItem', resource: table },
  { function: 'Runs', action: 'dynamodb:Query', resource: `${table}/index/due` },
  { function: 'Runs', action: 'kms:Decrypt', resource: key, context: { 'kms:EncryptionContext:slipway': 'data key' } },
  { function: 'Runs', action: 'states:StopExecution', resource: `${run}:1` }
]

test('what a role allows is no finding', async () => {
  assert.deepEqual(await refusals(policies(), calls), [])
})

test('each call is found for which a role has no statement', async () => {
  for (const [n, call] of calls.entries()) {
    const planted = policies()
    for (const policy of planted.roles.Runs.policies) {
      for (const statement of policy.Statement) statement.Action = statement.Action.filter((action) => action !== call.action)
      policy.Statement = policy.Statement.filter((statement) => statement.Action.length > 0)
    }
    planted.roles.Runs.policies = planted.roles.Runs.policies.filter((policy) => policy.Statement.length > 0)
    const found = await refusals(planted, calls)
    assert.equal(found.length, 1, `${n}: ${found}`)
    assert.match(found[0], new RegExp(call.action))
  }
})

test('a call is found that is about something else, or in another context', async () => {
  const others = [
    { ...calls[0], resource: `${table}2` },
    { ...calls[0], resource: 't-1' },
    { ...calls[2], context: { 'kms:EncryptionContext:slipway': 'another' } },
    { ...calls[2], context: {} },
    { ...calls[3], resource: 'arn:aws:states:us-east-1:000000000000:execution:slipway-rollout:1' },
    { ...calls[0], function: 'Threads' },
    { ...calls[0], action: 'dynamodb:NoSuchAction' }
  ]
  assert.equal((await refusals(policies(), others)).length, others.length)
})

test('a call is found about a partition that a role may not touch', async () => {
  const planted = policies()
  planted.roles.Runs.policies = [document(allow(['dynamodb:PutItem', 'dynamodb:Query'], [table, `${table}/index/*`], { 'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': ['W#*#D#*'] } }))]
  const about = (call, partition) => ({ ...call, context: { 'dynamodb:LeadingKeys': partition } })
  const found = await refusals(planted, [...calls.slice(0, 2).map((c) => about(c, 'W#0#D#0')), ...calls.slice(0, 2).map((c) => about(c, 'KEY#0'))])
  assert.equal(found.length, 2, `${found}`)
})

test('a call is found that the boundary of the role denies', async () => {
  const planted = policies()
  planted.roles.Runs.boundary.Statement.push({ Effect: 'Deny', Action: 'dynamodb:PutItem', Resource: '*' })
  assert.equal((await refusals(planted, calls)).length, 1)
})

test('a call is found that the key does not leave to the account', async () => {
  const planted = policies()
  planted.resources[key].Statement[0].Principal.AWS = 'arn:aws:iam::111111111111:root'
  assert.equal((await refusals(planted, calls)).length, 1)
})
