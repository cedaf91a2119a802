// Release notes: what the changes page says about this version, and the facts that an upgrade needs.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { latestSchema } from '../../../db/schema/migrate.ts'
import packageJson from '../../../package.json' with { type: 'json' }
import { root } from './compile.ts'
import { bunVersion } from './targets.ts'

/** Migrations from every earlier schema are in the program, so any version can be upgraded. */
const upgradeFrom = '0.1.0'

export type ReleasedFile = { name: string; bytes: number; sha256: string }

/** Returns the notes as Markdown. Fails if the changes page does not begin with this version. */
export function writeNotes(commit: string, files: readonly ReleasedFile[]): string {
  const { version } = packageJson
  const rows = files.map(({ name, bytes, sha256 }) => `| \`${name}\` | ${size(bytes)} | \`${sha256}\` |`)
  return `# Latchkey ${version}

| | |
|---|---|
| commit | \`${commit}\` |
| Bun | ${bunVersion} |
| schema | ${latestSchema} |
| upgrades from | ${upgradeFrom} or later |

Check the files, then install one: \`latchkey help install\` and \`latchkey help upgrade\`. The program for macOS on Intel must be signed once
on the Mac: \`codesign --force --sign - latchkey\`.

## Changes

${readChanges(version)}

## Files

| file | size | SHA-256 |
|---|---|---|
${rows.join('\n')}
`
}

function readChanges(version: string): string {
  const page = readFileSync(join(root, 'src/manual/changes.md'), 'utf8')
  const [, newest = ''] = page.split(/^## /m)
  const [heading, ...lines] = newest.split('\n')
  if (heading !== version) throw new Error(`src/manual/changes.md begins with ${heading}; package.json has ${version}`)
  return lines.join('\n').trim()
}

function size(bytes: number): string {
  return bytes < 100_000 ? `${(bytes / 1e3).toFixed(0)} KB` : `${(bytes / 1e6).toFixed(1)} MB`
}
