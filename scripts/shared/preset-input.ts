// What commands on presets take: the workspace, and the body of a request from a file.
import type { Command } from 'commander'
import { Fault } from '../../src/fault.ts'
import { presetBodyBytesMax } from '../../src/limits.ts'
import type { Arguments } from './command-line.ts'
import { readTextFile } from './input-files.ts'
import { inOrganization } from './operation-command.ts'

export function inWorkspace(made: Command): Command {
  return inOrganization(made).option('--workspace <workspace>', 'workspace, by name or id (default: default)')
}

export function inWorkspaceOf({ options }: Arguments) {
  return { organization: options.organization, workspace: options.workspace }
}

/** As text, since its numbers may be larger than ours. */
export function readBodyFile(path: string): string {
  const text = readTextFile(path, presetBodyBytesMax)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} cannot be read as JSON: ${(error as Error).message}`)
  }
  if (typeof body === 'object' && body !== null && 'presets' in body)
    throw new Fault(
      'usage',
      `${JSON.stringify(path)} is a list of presets, not a request body: use latchkey config apply for documents`,
    )
  return text
}
