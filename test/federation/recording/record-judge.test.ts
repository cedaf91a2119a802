// A record is judged as the exchange was decided, or it is said that nobody can know.
import { expect, test } from 'bun:test'
import type { Policy } from '../../../db/schema/schema.ts'
import { conditionEnvironment } from '../../../src/federation/condition/compile.ts'
import { createClaimHash } from '../../../src/federation/recording/claim-hash.ts'
import { createRecordJudge } from '../../../src/federation/recording/record-judge.ts'

const [hash, before] = ['0b', '0c'].map((digits) => createClaimHash(digits.repeat(32), 'organization'))

const policy: Policy = {
  ...{
    id: 'policy',
    organizationId: 'organization',
    issuerId: 'issuer',
    keyId: 'key',
    name: 'policy',
    description: null,
  },
  ...{ audience: 'a', subject: null, condition: 'claims.team == "x"', conditionEnvironment },
  ...{ attributeTo: null, attributeEnvironment: null },
  ...{ requiredScope: null, requiredTokenType: null, replayProtection: false, maxLifetimeSeconds: 900, enabled: true },
  ...{ allowedModels: null, allowedPresets: null, lintExceptions: null, tests: null, managedBy: null },
  ...{ createdAt: 0, updatedAt: 0, deletedAt: null },
}

test('hashes under a master key that was replaced since are not judged, though the claim would fit', () => {
  const judge = createRecordJudge(policy, () => hash)
  const judged = [hash, before].map((by) => {
    const claims = { aud: 'a', team: by?.hashOf('x') }
    return judge({ subject: 's', tokenId: null, reason: null, record: { claims, key: by?.key ?? '' } })
  })
  expect(judged).toEqual([{ outcome: 'allow' }, { unknown: 'hashed' }])
})
