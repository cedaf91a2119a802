// Preloaded by a server: every read of keys by their ids fails, which is how a change of one is loaded after its commit.
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
