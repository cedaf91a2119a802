// The routes of signed bundles of issuer keys, and of those who may sign them.
import { bundleSignerResponse, importResponse, removedSignerResponse } from '../operation/bundle-responses.ts'
import { listOf } from '../operation/responses.ts'
import type { AdminRoute } from './admin-route.ts'

const signers = '/workload-identity/bundle-signers'

export const bundleRoutes: AdminRoute[] = [
  {
    method: 'GET',
    path: signers,
    operation: 'bundle_signers.list',
    summary: 'List those who may sign bundles of issuer keys',
    answer: listOf(bundleSignerResponse),
  },
  {
    method: 'POST',
    path: signers,
    operation: 'bundle_signers.add',
    summary: 'Accept bundles of issuer keys that this key signs',
    data: bundleSignerResponse,
    status: 201,
  },
  {
    method: 'DELETE',
    path: `${signers}/{bundle_signer}`,
    operation: 'bundle_signers.remove',
    summary: 'Stop accepting bundles of a signer',
    data: removedSignerResponse,
  },
  {
    method: 'POST',
    path: '/workload-identity/key-bundles',
    operation: 'issuers.import',
    summary: 'Import the keys of issuers from signed bundles, or show with dry_run what would change',
    rules:
      'Each bundle is judged alone; a refused one has a reason and a message in the response, whose status is 200. The accepted ones are saved in one commit.',
    answer: importResponse,
  },
]
