// `latchkey token`: prints an access token for this workload, for programs that run a command to get their credential.
import { findAccessToken } from '../access-token.ts'
import { readSource, sourceOptions } from '../source-options.ts'
import { type AgentCommand, commonOptions } from './command.ts'

export const tokenCommand: AgentCommand = {
  name: 'token',
  description: 'Print an access token for this workload',
  options: [
    ...sourceOptions,
    { name: 'fresh', former: 'force', help: 'exchange even if a cached token is still valid, for example after a 401' },
    ...commonOptions,
  ],
  examples: [
    'token',
    'token --url https://llm.example.com/v1 --policy 03e6381f-4326-41a0-b1a5-e93afff92aa9 --identity file:/run/jwt',
    'token --fresh --json',
  ],
  notes: `The token is cached for this user in $XDG_RUNTIME_DIR and renewed when less than two minutes are left. On failure, the
command prints nothing on standard output. "latchkey help workloads" shows how to use it with clients.`,
  run: async (given, _operands, context) => {
    const token = await findAccessToken(readSource(given, context), { force: given.fresh !== undefined }, context)
    const expiresAt = new Date(token.expiresAt).toISOString()
    const found = { access_token: token.text, expires_at: expiresAt }
    context.print(given.json === undefined ? token.text : JSON.stringify(found, null, 2))
    return 0
  },
}
