// The settings file: NAME=value lines, as systemd reads them.

import { Fault } from '../fault.ts'
import { readText } from './database-server.ts'
import { configFileSetting, settings } from './settings.ts'

type Texts = Readonly<Partial<Record<string, string>>>

/**
 * The texts in the file that LATCHKEY_CONFIG names; none without it.
 * @throws Fault `configuration` for a line that sets nothing
 */
export function readConfigFile({
  flags,
  environment,
}: {
  flags: Texts
  environment: Texts
}): Partial<Record<string, string>> {
  const path = flags[configFileSetting] ?? environment[configFileSetting]
  if (path === undefined || path === '') return {}
  const values: Record<string, string> = {}
  const lines = readText(configFileSetting, path)
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
  for (const [index, line] of lines.entries()) {
    if (/^\s*([#;].*)?$/.test(line)) continue
    const { name, value } = parseLine(path, line, index + 1)
    values[name] = value
  }
  return values
}

function parseLine(path: string, line: string, number: number): { name: string; value: string } {
  const { name = '', value = '' } = /^\s*(?<name>\w+)\s*=(?<value>.*)$/.exec(line)?.groups ?? {}
  const place = `Line ${number} of ${JSON.stringify(path)} (${configFileSetting})`
  if (name === '') throw new Fault('configuration', `${place} is not a setting: write NAME=value`)
  const names: string[] = settings.map(({ env }) => env)
  if (names.includes(name)) return { name, value: unquote(value.trim()) }
  throw new Fault(
    'configuration',
    `${place} sets ${JSON.stringify(name)}, which is not a setting; latchkey help configuration lists all settings`,
  )
}

/** A value may be quoted, as systemd writes it. No character inside has a special meaning, not even #. */
function unquote(value: string): string {
  return /^(["']).*\1$/.test(value) && value.length > 1 ? value.slice(1, -1) : value
}
