// The environment of a workload whose platform writes its JWT to a file.
import { writeFileSync } from 'node:fs'
import type { Federation } from './latchkey.ts'

/** Writes a JWT of the federation to the file, and returns the settings with which a workload exchanges it. */
export async function workloadEnv({ mint, server, policy }: Federation, file: string) {
  writeFileSync(file, `${await mint()}\n`)
  return {
    LATCHKEY_URL: server.baseUrl,
    LATCHKEY_POLICY: policy.id,
    LATCHKEY_IDENTITY: `file:${file}`,
  }
}
