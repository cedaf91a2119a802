// The manifest beside an archive: what the file holds, for people and scripts that have no database. Names of members never change
// their meaning within a format version.

import { latestSchema } from '../../db/schema/migrate.ts'
import type { Archive } from '../../db/schema/record-schema.ts'
import { tableOf } from '../../db/tables/archives.ts'
import { type } from '../values/shape.ts'
import type { Written } from './archive-file.ts'

const formatVersion = 1

export const manifestShape = type({
  format: 'number.integer',
  kind: "'exchanges' | 'usage'",
  table: 'string',
  /** Version of the schema whose columns the rows have. */
  schema: 'number.integer',
  file: 'string',
  sha256: 'string',
  bytes: 'number.integer',
  rows: 'number.integer',
  first_row_id: 'number.integer',
  last_row_id: 'number.integer',
  from: 'string',
  to: 'string',
  before: 'string',
  organizations: '(string | null)[]',
})

export type Manifest = typeof manifestShape.infer

export function manifestOf(archive: Archive, { sha256, bytes }: Written): Manifest {
  const { kind, file, rowCount, firstRowId, lastRowId, firstAt, lastAt, before, organizations } = archive
  return {
    format: formatVersion,
    kind,
    table: tableOf(kind),
    schema: latestSchema,
    ...{ file, sha256, bytes },
    rows: rowCount,
    first_row_id: firstRowId,
    last_row_id: lastRowId,
    from: timeText(firstAt),
    to: timeText(lastAt),
    before: timeText(before),
    organizations,
  }
}

/** The file name of the manifest of an archive. */
export function manifestFileOf(file: string): string {
  return file.replace(/\.ndjson\.gz$/, '.manifest.json')
}

function timeText(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
