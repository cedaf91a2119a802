// What may go on while the database is away: only what its absence explains, and only where an operator has chosen so.
import { expect, test } from 'bun:test'
import { asNotReached } from '../../db/remote/server-errors.ts'
import { isRefreshed } from '../../src/inference/without-database.ts'

const away = asNotReached(new Error('refused'))
const damaged = new Error('no such table: usage')
const graceOf = (serves: boolean) => ({ mayServe: () => serves, isUncertain: () => true, noteUse: () => {} })

test('a refresh that fails is an error, unless the database is away and grace may serve', async () => {
  expect(await isRefreshed(Promise.resolve(), { grace: undefined })).toBe(true)
  expect(await isRefreshed(Promise.reject(away), { grace: graceOf(true) })).toBe(false)
  await expect(isRefreshed(Promise.reject(damaged), { grace: graceOf(true) })).rejects.toThrow(damaged)
  await expect(isRefreshed(Promise.reject(away), { grace: graceOf(false) })).rejects.toThrow(away)
  await expect(isRefreshed(Promise.reject(away), { grace: undefined })).rejects.toThrow(away)
})
