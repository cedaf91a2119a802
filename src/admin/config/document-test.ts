// Lints the policies of a document and runs their tests without a database, so that a document can be checked before it is committed.
import { createPace } from '../../../db/read/pace.ts'
import type { Policy } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import type { LintedIssuer } from '../../federation/lint/witness.ts'
import type { TestedIssuer } from '../../federation/policy-test.ts'
import { checkShape } from '../../values/shape.ts'
import { newIssuerColumns } from '../issuers/issuers.ts'
import { draftPolicy } from '../policies/policies.ts'
import { checkPolicyFields } from '../policies/policy-edit.ts'
import { isBlocking, lintAgainst } from '../policies/policy-lint.ts'
import { describeFailure, runTests } from '../policies/policy-tests.ts'
import { type ConfigDocument, documentBounds, documentShape, type EntryOf } from './document.ts'
import type { FailedTests, PolicyFindings } from './review.ts'

export type TestedDocument = {
  policies: number
  tests: number
  findings: PolicyFindings[]
  failed_tests: FailedTests[]
  /** Policies that cannot be applied. */
  blocked: string[]
}

const nobody = { organizationId: '', issuerId: '', keyId: '' }

/**
 * Tests documents, which may have several owners: a policy may name an issuer of another. `now` in milliseconds since 1970 UTC.
 * @throws Fault `invalid` for a value that is not a document, or that names the policy which cannot be saved
 */
export async function testDocuments(values: readonly unknown[], now: number): Promise<TestedDocument> {
  const documents = values.map((value): ConfigDocument => checkShape(documentShape, value, documentBounds))
  const policies = documents.flatMap(({ policies = [] }) => policies)
  const issuers = documents.flatMap(({ issuers = [] }) => issuers)
  const tested: TestedDocument = { policies: policies.length, tests: 0, findings: [], failed_tests: [], blocked: [] }
  const pace = createPace()
  for (const policy of policies) {
    const row = draftChecked(policy, now)
    const issuer = issuerOf(issuers, policy)
    const findings = await lintAgainst(row, issuer)
    if (findings.length > 0) tested.findings.push({ policy: row.name, findings })
    const results = await runTests(row, issuer, row.tests ?? [], now)
    const failures = results.filter(({ ok }) => !ok).map(describeFailure)
    if (failures.length > 0) tested.failed_tests.push({ policy: row.name, failures })
    if (failures.length > 0 || findings.some(isBlocking)) tested.blocked.push(row.name)
    tested.tests += results.length
    await pace()
  }
  return tested
}

function draftChecked(policy: EntryOf<'policies'>, now: number): Policy {
  const row = draftPolicy(policy, nobody, now)
  try {
    checkPolicyFields(row)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault(error.code, `policies ${JSON.stringify(row.name)}: ${error.message}`, { cause: error })
  }
  return row
}

function issuerOf(
  issuers: readonly EntryOf<'issuers'>[],
  { name, issuer }: EntryOf<'policies'>,
): LintedIssuer & TestedIssuer {
  const found = issuers.find((each) => each.name === issuer)
  if (found === undefined)
    throw new Fault(
      'invalid',
      `policies ${JSON.stringify(name)}: no file has the issuer ${JSON.stringify(issuer)}; add its file, or use config plan`,
    )
  return newIssuerColumns(found)
}
