// What lists read of every key and policy: from the beginning of its packed text, so that only the rows that are shown are unpacked.

import type { Policy } from '../federation/policy.ts'
import type { Key } from '../keys/api-key.ts'

/** The columns that begin a packed row. Those before `organizationId` find it. */
export const keyHeadFields = ['id', 'hash', 'previousHash', 'organizationId', 'deletedAt', 'name'] as const
export const policyHeadFields = ['id', 'keyId', 'issuerId', 'organizationId', 'name'] as const

export type KeyHead = { organizationId: string; isDeleted: boolean; name: string }
export type PolicyHead = { organizationId: string; name: string }

/** A JSON text, quotes included. */
const name = '("(?:[^"\\\\]|\\\\.)*")'
const ofKey = new RegExp(`^\\["[^"]*","[^"]*","[^"]*","([^"]*)",(null|-?\\d+),${name}`)
const ofPolicy = new RegExp(`^\\["[^"]*","[^"]*","[^"]*","([^"]*)",${name}`)

/** The head of a key, packed or not. */
export function headOfKey(held: Key | string): KeyHead {
  if (typeof held !== 'string') {
    const { organizationId, deletedAt, name } = held
    return { organizationId, isDeleted: deletedAt !== null, name }
  }
  const [, organizationId = '', deletedAt, text = ''] = ofKey.exec(held) ?? []
  return { organizationId, isDeleted: deletedAt !== 'null', name: plain(text) }
}

/** The head of a policy, packed or not. */
export function headOfPolicy(held: Policy | string): PolicyHead {
  if (typeof held !== 'string') return { organizationId: held.organizationId, name: held.name }
  const [, organizationId = '', text = ''] = ofPolicy.exec(held) ?? []
  return { organizationId, name: plain(text) }
}

function plain(text: string): string {
  return text.includes('\\') ? String(JSON.parse(text)) : text.slice(1, -1)
}
