// The second address of the server, to which the admin page moves where the settings have one.
import { type Listener, listen } from '../runtime/listen.ts'
import type { Handler } from '../runtime/listener.ts'

type Address = { hostname: string; port: number }

/**
 * Listens there, with the port that was chosen, and adds the listener to `listeners`. Undefined without such an address.
 * @throws Fault `configuration` when the address cannot be used
 */
export async function listenForPage(
  { adminPage, adminListen }: { adminPage: boolean; adminListen: Address | undefined },
  listeners: Listener[],
  handler: Handler,
): Promise<Address | undefined> {
  if (!adminPage || adminListen === undefined) return undefined
  const listener = await listen({ ...adminListen, setting: 'LATCHKEY_ADMIN_LISTEN' }, handler)
  listeners.push(listener)
  return { hostname: adminListen.hostname, port: listener.port }
}
