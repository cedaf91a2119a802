// Sign-in where this machine has no browser: the person enters a code on another device (RFC 8628).
import { setTimeout as pause } from 'node:timers/promises'
import * as oauth from 'oauth4webapi'
import { Fault } from '../../fault.ts'
import {
  authenticationOf,
  type ClientSettings,
  clientOf,
  errorCodeOf,
  explain,
  explained,
  type Provider,
} from '../login-provider.ts'

/** RFC 8628 §3.5. */
const [intervalSecondsDefault, slowDownSeconds] = [5, 5]
/** A provider may give codes for longer, and nobody waits for it. */
const waitSecondsMax = 30 * 60

type DeviceFlow = { scope: string; show: (line: string) => void; sleep?: (milliseconds: number) => Promise<unknown> }

/** Shows the address and the code, and waits until the person has signed in. Throws a fault. */
export async function signInOnDevice(
  { server, options }: Provider,
  settings: ClientSettings,
  { scope, show, sleep = pause }: DeviceFlow,
): Promise<oauth.TokenEndpointResponse> {
  if (server.device_authorization_endpoint === undefined)
    throw new Fault('unavailable', 'The identity provider has no device flow', {
      hint: ': run latchkey login on a machine with a browser, or ask for the flow to be allowed',
    })
  const client = clientOf(settings)
  const authentication = authenticationOf(settings)
  const device = await explained('begin the sign-in', async () => {
    const response = await oauth.deviceAuthorizationRequest(server, client, authentication, { scope }, options)
    return oauth.processDeviceAuthorizationResponse(server, client, response)
  })
  const { verification_uri, verification_uri_complete, user_code, device_code } = device
  show(`Open ${printableUrl(verification_uri)} on any device, and enter the code ${printableCode(user_code)}`)
  if (verification_uri_complete !== undefined) show(`or open ${printableUrl(verification_uri_complete)}`)
  let seconds = Math.max(device.interval ?? intervalSecondsDefault, 1)
  let waited = 0
  const waitMax = Math.min(device.expires_in, waitSecondsMax)
  while (waited < waitMax) {
    await sleep(seconds * 1_000)
    waited += seconds
    try {
      const response = await oauth.deviceCodeGrantRequest(server, client, authentication, device_code, options)
      return await oauth.processDeviceCodeResponse(server, client, response)
    } catch (error) {
      const code = errorCodeOf(error)
      // A provider that is away for a moment is asked again, later (RFC 8628 §3.5).
      const isAway = error instanceof Fault && (error.code === 'unavailable' || error.code === 'timeout')
      if (code === 'slow_down' || isAway) seconds += slowDownSeconds
      else if (code !== 'authorization_pending') throw explain('sign in', error)
    }
  }
  throw new Fault('timeout', 'Nobody signed in before the code expired', { hint: ': run latchkey login again' })
}

/** A provider must not write control characters to a terminal, or lead to anything but a page. */
function printableUrl(text: string): string {
  const isPage = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  if (!isPage) throw new Fault('bad_gateway', 'The identity provider sent no address for the sign-in')
  return new URL(text).href
}

function printableCode(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]/g, '').slice(0, 64)
}
