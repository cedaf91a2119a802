// How many requests this program may send at a time. It imports next to nothing, because a
// restart loads it twice.
import { isCompiled } from './own-process.ts'

/** How many requests Bun sends at a time, read from the environment once. The default is 256; more wait silently. */
const outboundSetting = 'BUN_CONFIG_MAX_HTTP_REQUESTS'
const outboundRequestsMax = '65535'

/**
 * Restarts this program in the same process with room for as many outbound requests as there are descriptors. Call it before anything is
 * opened. Returns where no limit has to be raised.
 */
export function raiseOutboundLimit(): void {
  const { execve, env, execPath, execArgv, argv } = process
  if (!('Bun' in globalThis) || env[outboundSetting] !== undefined || execve === undefined) return
  execve(execPath, [execPath, ...(isCompiled() ? argv.slice(2) : [...execArgv, ...argv.slice(1)])], {
    ...env,
    [outboundSetting]: outboundRequestsMax,
  } as Record<string, string>)
}
