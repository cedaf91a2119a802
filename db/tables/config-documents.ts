// The configuration documents that were last applied, one per organization and owner.
import type { Orm } from '../file/open.ts'
import { type ConfigDocument, configDocuments } from '../schema/schema.ts'
import { insertion, insertRows, type Statement } from '../write/rows.ts'

const newDocuments = insertion(configDocuments, 'insert or replace')

export function listConfigDocuments(orm: Orm): Promise<ConfigDocument[]> {
  return orm.select().from(configDocuments)
}

/** Replaces the row with the same id. */
export function putConfigDocument(row: ConfigDocument): Statement {
  return insertRows(newDocuments, [row])
}
