// The kinds of archives. They have their own file because commands need the names without the database.

export const archiveKinds = ['exchanges', 'usage'] as const
export type ArchiveKind = (typeof archiveKinds)[number]
