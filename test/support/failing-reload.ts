// Preloaded into a server: every read of keys by id fails, so a committed key change cannot be loaded.
import { createClient, type InStatement } from '@libsql/client'

const prototype = Object.getPrototypeOf(createClient({ url: ':memory:' })) as {
  execute: (statement: InStatement, ...rest: unknown[]) => Promise<unknown>
}
const { execute } = prototype
prototype.execute = function (statement, ...rest) {
  const sql = typeof statement === 'string' ? statement : statement.sql
  if (/from "api_keys" where "api_keys"."id" in/.test(sql)) throw new Error('disk I/O error')
  return execute.call(this, statement, ...rest)
}
