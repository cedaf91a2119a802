// `GET /audit/log/…`: the transparent audit log as the files of C2SP tlog-tiles, from the database: what `LATCHKEY_AUDIT_DIR` has, for
// witnesses and auditors with a management key of the installation.
import type { Orm } from '../../../db/file/open.ts'
import type { LogCheckpoint } from '../../../db/schema/log-schema.ts'
import { findCheckpoint, newestCheckpoint } from '../../../db/tables/audit-checkpoints.ts'
import { readEpoch } from '../../audit-log/epochs.ts'
import { tileBytes } from '../../audit-log/folder.ts'
import { parseTilePath, tileWidth } from '../../audit-log/transparency/tiles.ts'
import { Fault } from '../../fault.ts'
import type { Endpoint, Handle } from '../../http/endpoint.ts'
import { rejectQuery } from '../../http/input.ts'
import { errorResponses } from '../../http/operation-doc.ts'
import { authenticateManagement, type BearerContext } from '../../keys/bearer.ts'
import { accessOf } from '../../keys/roles.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from '../operation/context.ts'
import { checkInstallationOrganization } from '../operation/installation.ts'

export type AuditLogEndpointContext = BearerContext & Needs<'orm' | 'registry'>

const path = '/audit/log/{file+}'

const showFile: Handle<AuditLogEndpointContext> = async (request, context, { params }) => {
  const key = await authenticateManagement(request, context, 'audit.log')
  checkInstallationOrganization(context.registry, key.organizationId)
  rejectQuery(request)
  const { orm } = context
  const epoch = await readEpoch(orm)
  const newest = epoch && (await newestCheckpoint(orm, epoch.name))
  const file = params.file ?? ''
  const found =
    newest && (file.startsWith('tile/') ? await readTile(orm, newest, file) : await readNote(orm, newest, file))
  if (found === undefined) throw new Fault('not_found', 'Resource not found')
  return found
}

export const auditLogEndpoint: Endpoint<AuditLogEndpointContext> = {
  method: 'GET',
  path,
  handle: showFile,
  openapi: {
    name: 'getAuditLogFile',
    summary:
      'Read a file of the transparent audit log: `checkpoint`, `checkpoints/SIZE`, `tile/LEVEL/…` or `tile/entries/…`',
    rules:
      'It belongs to the whole installation: only management keys of the organization that it was set up with may call it. The files are those of C2SP tlog-tiles.',
    access: accessOf('audit.log'),
    segments: { file: type('string').configure({ says: 'Its path, such as `tile/entries/000`' }) },
    responses: {
      200: { description: 'The file', mediaType: 'application/octet-stream' },
      ...errorResponses(400, 401, 403, 404),
    },
  },
}

async function readNote(orm: Orm, newest: LogCheckpoint, file: string): Promise<Response | undefined> {
  const [, size] = /^checkpoints\/(0|[1-9][0-9]{0,15})$/.exec(file) ?? []
  const found =
    size === undefined ? file === 'checkpoint' && newest : await findCheckpoint(orm, newest.epoch, Number(size))
  if (!found) return undefined
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }
  return new Response(found.note, { headers })
}

/** Tiles beyond the newest checkpoint are nobody's yet. */
async function readTile(orm: Orm, { size }: LogCheckpoint, file: string): Promise<Response | undefined> {
  const tile = parseTilePath(file)
  if (tile === undefined) return undefined
  const hashes = Math.floor(size / tileWidth ** (tile.level === 'entries' ? 0 : tile.level))
  if (tile.index * tileWidth + tile.width > hashes) return undefined
  const headers = {
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
  }
  const bytes = await tileBytes(orm, tile)
  if (bytes === undefined) throw new Fault('not_found', 'These entries were pruned: their rows are in an archive')
  return new Response(new Uint8Array(bytes), { headers })
}
