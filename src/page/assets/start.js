// Get started: the three steps to a first exchange.
/** @import { View } from '../types.ts' */
import { empty } from './parts.js'

/** @type {View} */
export const view = () => () => empty('Get started', 'Add an issuer, then a policy.')
