// How fast the `node:crypto` of this runtime is.
import { findDeno } from './deno.ts'

/** Whether `node:crypto` takes less time than WebCrypto. On Deno it takes twice as long. */
export const isNodeCryptoFast = findDeno() === undefined
