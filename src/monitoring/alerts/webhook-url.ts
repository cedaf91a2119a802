// Where alerts may be sent: https:// to any public host, and private addresses only in networks that the operator names. It sends nothing.
import { isIP } from 'node:net'
import { hostOf, objectionToNetwork } from '../../federation/issuer/issuer-url.ts'
import { urlCharactersMax } from '../../limits.ts'
import { type AddressList, addressList } from '../../values/ip-address.ts'

export const webhookNetworksSetting = 'LATCHKEY_WEBHOOK_NETWORKS'
const nowhere = addressList()

/**
 * Returns the problem with the URL of a webhook, or undefined. `networks`: the private networks that the operator names. A name is only
 * judged once it is resolved (`addressProblem`).
 */
export function webhookUrlProblem(text: string, networks: AddressList | undefined): string | undefined {
  if (text.length > urlCharactersMax) return `must be at most ${urlCharactersMax} characters`
  if (!URL.canParse(text)) return 'is not a URL'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return 'may not hold a user name or password'
  if (/[#\s\p{Cc}]/u.test(text)) return 'may not have a fragment, white space or control characters'
  const isPlain = url.protocol === 'http:'
  if (url.protocol !== 'https:' && !isPlain) return 'must begin with https://'
  const host = hostOf(url)
  if (isPlain && networks === undefined)
    return `must begin with https:// (http:// only leads to networks in ${webhookNetworksSetting})`
  const addresses = host === 'localhost' ? ['127.0.0.1'] : isIP(host) === 0 ? [] : [host]
  return addressProblem(addresses, isPlain, networks)
}

/** Returns the problem with the addresses that a URL leads to, or undefined. `isPlain`: without TLS. */
export function addressProblem(
  addresses: readonly string[],
  isPlain: boolean,
  networks: AddressList | undefined,
): string | undefined {
  for (const address of addresses) {
    const objection = objectionToNetwork(address, networks ?? nowhere, webhookNetworksSetting)
    if (objection !== undefined) return objection
    if (isPlain && networks?.has(address) !== true)
      return `leads to ${address}, which is not in ${webhookNetworksSetting}: use https://`
  }
  return undefined
}
