// The configuration documents that were last applied, one per organization and owner.
import type { Orm } from './open.ts'
import { insertion, insertRows, type Statement } from './rows.ts'
import { type ConfigDocument, configDocuments } from './schema.ts'

const newDocuments = insertion(configDocuments, 'insert or replace')

export function listConfigDocuments(orm: Orm): Promise<ConfigDocument[]> {
  return orm.select().from(configDocuments)
}

/** Replaces the row with the same id. */
export function putConfigDocument(row: ConfigDocument): Statement {
  return insertRows(newDocuments, [row])
}
