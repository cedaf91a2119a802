// The routes about the whole installation, and the manual. Only keys of the organization that it was set up with may call the former.

import { archiveResponse } from '../archives.ts'
import { logResponse } from '../audit-log.ts'
import { createdBackupResponse } from '../backup.ts'
import { listOf } from '../operation/responses.ts'
import { organizationResponse } from '../organizations.ts'
import { signingKeyResponse } from '../signing-keys.ts'
import { systemResponse } from '../system.ts'
import { priceListResponse, removedPriceResponse, savedPricesResponse } from '../upstreams/prices.ts'
import { queueResponse } from '../upstreams/queue-state.ts'
import { upstreamCheckResponse, upstreamResponse } from '../upstreams/upstream-response.ts'
import type { AdminRoute } from './admin-route.ts'

const installation = '/installation'
const upstreams = `${installation}/upstreams`
const signingKeys = `${installation}/signing-keys`
const rules =
  'It belongs to the whole installation: only management keys of the organization that it was set up with may call it.'

const ofInstallation: AdminRoute[] = [
  {
    method: 'GET',
    path: installation,
    operation: 'system.show',
    summary: 'Show the installation: version, settings in effect without secrets, backups, certificates',
    data: systemResponse,
  },
  {
    method: 'GET',
    path: upstreams,
    operation: 'upstreams.list',
    summary: 'List the upstreams in the order in which they are tried, without their credentials',
    answer: listOf(upstreamResponse),
  },
  {
    method: 'GET',
    path: `${upstreams}/{upstream}`,
    operation: 'upstreams.show',
    summary: 'Show an upstream, without its credential',
    data: upstreamResponse,
  },
  {
    method: 'PATCH',
    path: `${upstreams}/{upstream}`,
    operation: 'upstreams.tune',
    summary: 'Change how much an upstream gets; commands alone change its URL, credential, CA and headers',
    data: upstreamResponse,
  },
  {
    method: 'POST',
    path: `${upstreams}/{upstream}/check`,
    operation: 'upstreams.check',
    summary: 'Request the list of models from an upstream, as inference would',
    answer: listOf(upstreamCheckResponse),
    isBare: true,
  },
  {
    method: 'GET',
    path: `${installation}/queue`,
    operation: 'upstreams.top',
    summary: 'Show what runs, waits and rests at the upstreams at this moment, and the keys whose requests these are',
    data: queueResponse,
  },
  {
    method: 'GET',
    path: `${installation}/prices`,
    operation: 'prices.list',
    summary: 'List the prices of models',
    answer: priceListResponse,
  },
  {
    method: 'POST',
    path: `${installation}/prices`,
    operation: 'prices.set',
    summary: 'Set the prices of models, now or from a time on; all of them or none',
    rules: 'If-Match is for a single price: its ETag is its `updated_at` in quotes.',
    answer: savedPricesResponse,
    isConditional: true,
  },
  {
    method: 'POST',
    path: `${installation}/prices/remove`,
    operation: 'prices.remove',
    summary: 'Remove the price of a model',
    data: removedPriceResponse,
  },
  {
    method: 'POST',
    path: `${installation}/backups`,
    operation: 'backup.create',
    summary: 'Make a backup now, in the folder of the settings',
    data: createdBackupResponse,
    status: 201,
    isBare: true,
  },
  {
    method: 'GET',
    path: `${installation}/archives`,
    operation: 'archive.list',
    summary: 'List the archives of old rows, newest first',
    answer: listOf(archiveResponse),
  },
  {
    method: 'GET',
    path: `${installation}/organizations`,
    operation: 'organizations.list',
    summary: 'List the organizations with their plans',
    answer: listOf(organizationResponse),
  },
  {
    method: 'POST',
    path: `${installation}/organizations/{organization}/plan`,
    operation: 'organizations.plan',
    summary: 'Change the plan of an organization',
    data: organizationResponse,
  },
  {
    method: 'GET',
    path: `${installation}/audit-log`,
    operation: 'audit.log',
    summary: 'Show the transparent audit log: its newest checkpoint, its keys, and what failed',
    data: logResponse,
  },
  {
    method: 'GET',
    path: signingKeys,
    operation: 'signing_keys.list',
    summary: 'List the keys that sign access tokens, without their private halves',
    answer: listOf(signingKeyResponse),
  },
  {
    method: 'POST',
    path: `${signingKeys}/rotate`,
    operation: 'signing_keys.rotate',
    summary: 'Publish a new signing key, which signs as soon as every verifier can have it',
    data: signingKeyResponse,
    status: 201,
  },
]

export const installationRoutes: AdminRoute[] = ofInstallation.map((route) => ({
  ...route,
  rules,
  ofInstallation: true,
}))
