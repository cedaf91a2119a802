// Reads configuration documents: YAML or JSON, with the files and environment variables that they name in place of values.
import { hash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import type { LineCounter } from 'yaml'
import { sourcedIn } from '../../src/admin/kinds/kinds.ts'
import { Fault } from '../../src/fault.ts'
import { socketBodyBytesMax } from '../../src/limits.ts'
import { deferLibrary } from '../../src/values/deferred-library.ts'
import { rejectLongText } from './config-size.ts'
import { readTextFile } from './input-files.ts'

/** Only these commands read YAML. */
export const yamlLibrary = deferLibrary('yaml', () => require('yaml') as typeof import('yaml'))

type Fields = Record<string, unknown>

/** As an operation takes them: one document with its digest, or those of several owners in the order in which the files name them. */
export type GivenDocuments = { document?: Fields; sha256?: string; documents?: Fields[]; sha256s?: string[] }

/**
 * The documents in files. Files of the same owner are joined, collection by collection. A digest is that of the files of its document,
 * one after the other.
 * @throws Fault `usage` that names the file and, for a mistake in the text, its line
 */
export function readConfigFiles(paths: readonly string[]): GivenDocuments {
  const files = paths.map((path): ConfigFile => {
    const text = readTextFile(path, socketBodyBytesMax)
    return { path, text, document: readConfigText(path, text) }
  })
  const [first, ...others] = files
  for (const other of others) if (first !== undefined) rejectDifferent(['latchkey', 'organization'], first, other)
  const parts = [...Map.groupBy(files, ({ document }) => document.owner).values()].map((some) => ({
    document: joinDocuments(some),
    sha256: hash('sha256', some.map(({ text }) => text).join('')),
  }))
  const [only = { document: {}, sha256: '' }, second] = parts
  if (second === undefined) return only
  rejectUnowned(files)
  return { documents: parts.map(({ document }) => document), sha256s: parts.map(({ sha256 }) => sha256) }
}

/** The documents of files, one for each. @throws Fault `usage` */
export function readConfigDocuments(paths: readonly string[]): Fields[] {
  return paths.map((path) => readConfigText(path, readTextFile(path, socketBodyBytesMax)))
}

type ConfigFile = { path: string; text: string; document: Fields }

function joinDocuments([first, ...others]: ConfigFile[]): Fields {
  const joined: Fields = { ...first?.document }
  for (const other of others)
    for (const name of new Set([...Object.keys(joined), ...Object.keys(other.document)])) {
      const lists = [joined[name] ?? [], other.document[name] ?? []]
      if (joined[name] !== other.document[name] && lists.every(Array.isArray)) joined[name] = lists.flat()
      else if (first !== undefined) rejectDifferent([name], { ...first, document: joined }, other)
    }
  return joined
}

function rejectDifferent(names: readonly string[], one: ConfigFile, other: ConfigFile): void {
  for (const name of names)
    if (one.document[name] !== other.document[name])
      throw new Fault(
        'usage',
        `${JSON.stringify(other.path)} and ${JSON.stringify(one.path)} differ in ${JSON.stringify(name)}; they must have the same`,
      )
}

/** A forgotten owner would make a file an edit by hand, beside files that own what they name. */
function rejectUnowned(files: readonly ConfigFile[]): void {
  const unowned = files.find(({ document }) => (document.owner ?? null) === null)
  if (unowned !== undefined)
    throw new Fault(
      'usage',
      `${JSON.stringify(unowned.path)} has no owner, and other files have one; add owner to it, or plan it alone`,
    )
}

function readConfigText(path: string, text: string): Fields {
  rejectLongText(path, text)
  const document = parseYaml(path, text)
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new Fault('usage', `${JSON.stringify(path)} is not a configuration document; it must be an object`)
  const folder = path === '-' ? '.' : dirname(path)
  const resolved = Object.entries(document).map(([collection, entries]) => [
    collection,
    Array.isArray(entries)
      ? entries.map((entry: unknown) => resolveSources(entry, sourcedIn(collection), folder))
      : (entries as unknown),
  ])
  return Object.fromEntries(resolved) as Fields
}

/** JSON is YAML. Aliases and equal names are refused, since a reader overlooks what they change. */
function parseYaml(path: string, text: string): unknown {
  const { LineCounter, parseDocument } = yamlLibrary()
  const lineCounter = new LineCounter()
  // The check of the library compares each name with each, and takes 1 and "1" for different names.
  const document = parseDocument(text, { uniqueKeys: false, version: '1.2', intAsBigInt: true, lineCounter })
  const [problem] = [...document.errors, ...document.warnings]
  if (problem !== undefined) throw new Fault('usage', `${JSON.stringify(path)} cannot be read: ${problem.message}`)
  if (document.directives?.yaml.version !== '1.2')
    throw new Fault('usage', `${JSON.stringify(path)} must be YAML 1.2; remove the line %YAML`)
  rejectEqualNames(path, document.contents, lineCounter)
  try {
    return withNumbers(path, document.toJS({ maxAliasCount: 0 }))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('usage', `${JSON.stringify(path)} has an alias; write the value out instead`)
  }
}

/** Compared as texts, since that is what names of JSON are. The visitor of the library takes twice the time. */
function rejectEqualNames(path: string, node: unknown, lineCounter: LineCounter): void {
  const { isMap, isScalar, isSeq } = yamlLibrary()
  if (isSeq(node)) for (const item of node.items) rejectEqualNames(path, item, lineCounter)
  if (!isMap(node)) return
  const names = new Set<string>()
  for (const { key, value } of node.items) {
    rejectEqualNames(path, value, lineCounter)
    if (!isScalar(key)) continue
    const name = String(key.value ?? '')
    if (!names.has(name)) {
      names.add(name)
      continue
    }
    const { line, col } = lineCounter.linePos(key.range?.[0] ?? 0)
    throw new Fault(
      'usage',
      `${JSON.stringify(path)} has the name ${JSON.stringify(name)} twice in one map at line ${line}, column ${col}; remove one of the two`,
    )
  }
}

/** Whole numbers arrive as big integers. One that a JSON number cannot hold exactly would be changed silently. */
function withNumbers(path: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => withNumbers(path, each))
  const isExact = typeof value !== 'bigint' || Number.isSafeInteger(Number(value))
  if (!isExact || value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY || Number.isNaN(value))
    throw new Fault(
      'usage',
      `${JSON.stringify(path)} has a number that cannot be kept exactly: ${String(value)}; use at most ${Number.MAX_SAFE_INTEGER}, or quote it as text`,
    )
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withNumbers(path, each)]))
}

function resolveSources(entry: unknown, fields: readonly string[], folder: string): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  const resolved: Fields = { ...entry }
  for (const field of fields) {
    const text = textOf(resolved[field], folder)
    if (text !== undefined) resolved[field] = field === 'jwks' ? parseYaml(`${field} of ${folder}`, text) : text
  }
  return resolved
}

/** The text that `{ file: PATH }` or `{ env: NAME }` names; paths start at the folder of the document. */
function textOf(value: unknown, folder: string): string | undefined {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return undefined
  const { file, env } = value as Fields
  if (typeof file === 'string') return withoutLineEnd(readTextFile(resolve(folder, file)))
  if (typeof env !== 'string') return undefined
  const text = process.env[env]
  if (text === undefined || text === '')
    throw new Fault('usage', `The environment variable ${env}, which the document names, is not set`)
  return text
}

/** Editors end files with a line break, which is no part of a credential. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '')
}
