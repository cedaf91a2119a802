// `latchkey audit cosign`: a witness signs a checkpoint on its own machine, and the installation takes its signature back.
import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { replaceText } from '../src/audit-log/folder.ts'
import { createSignerKey, isKeyName, type SignerKey, type VerifierKey } from '../src/audit-log/transparency/note.ts'
import { cosign, type WitnessRefusal } from '../src/audit-log/witness.ts'
import { Fault } from '../src/fault.ts'
import { checkShape, type } from '../src/values/shape.ts'
import { verifierKeys } from './audit-verify.ts'
import { callOperation } from './shared/call-operation.ts'
import {
  type Arguments,
  command,
  dependencies,
  givenTo,
  print,
  readConfig,
  withSettings,
} from './shared/command-line.ts'
import { readJsonFile, readTextFile } from './shared/input-files.ts'

export function cosignCommand(): Command {
  const made = command(
    'cosign [folder]',
    'Sign the checkpoint in a folder as a witness, or take such a signature back',
    [
      'audit cosign --new-key office --witness-key-file office.key',
      'audit cosign /mnt/usb/20261126-3fa9c1d2 --verifier-key log.vkey --witness-key-file office.key --state-file office.state > cosigned',
      'audit cosign --import cosigned',
    ],
  )
    .option(
      '--verifier-key <verifier-key>',
      'verifier key of the log, or a file with it',
      (text) => verifierKeys(text)[0],
    )
    .option('--witness-key-file <file>', 'key of the witness')
    .option(
      '--state-file <file>',
      'what the witness has signed so far; it signs no checkpoint that does not continue it',
    )
    .option(
      '--new-key <name>',
      'create the key of a witness, in the file of --witness-key-file, and print its verifier key',
    )
    .option('--import <file>', 'at the installation: add the signatures of a cosigned checkpoint to its log')
    .addHelpText(
      'after',
      `
A witness runs on a machine that the administrators of the log do not control. It needs the folder of the log, by network or on a USB stick,
and neither a server nor a database. Only --import does.`,
    )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { newKey, import: imported } = given.options
    if (typeof newKey === 'string') return createKey(newKey, given)
    return typeof imported === 'string' ? importSignatures(imported, given) : sign(given)
  })
}

function fileOption({ options }: Arguments, name: string, flag: string): string {
  const path = options[name]
  if (typeof path !== 'string') throw new Fault('usage', `${flag} must be given; see: latchkey audit cosign --help`)
  return path
}

function createKey(name: string, given: Arguments): void {
  if (!isKeyName(name))
    throw new Fault('usage', `${JSON.stringify(name)} cannot name a witness: use a name without spaces and +`)
  const path = fileOption(given, 'witnessKeyFile', '--witness-key-file')
  const seed = randomBytes(32)
  const { text } = createSignerKey(name, 'witness', seed)
  const key = { name, seed: seed.toString('base64'), verifier_key: text }
  try {
    // Never replaces a file: the key in it may be in use.
    writeFileSync(path, `${JSON.stringify(key)}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} cannot be created: ${(error as Error).message}`)
  }
  print(given.options.json === true ? JSON.stringify({ file: path, verifier_key: text }, null, 2) : text)
}

async function importSignatures(path: string, { options }: Arguments): Promise<void> {
  const input = { checkpoint: readTextFile(path) }
  const { size, added } = await callOperation(readConfig(options), dependencies, 'audit.cosign', input, {})
  const names = added.length === 0 ? 'nothing: it has them already' : `signatures of ${added.join(', ')}`
  print(
    options.json === true
      ? JSON.stringify({ size, added }, null, 2)
      : `Added to the checkpoint of ${size} entries: ${names}`,
  )
}

const keyShape = type({ '+': 'reject', name: 'string', seed: 'string', verifier_key: 'string' })

function readWitnessKey(path: string): SignerKey {
  const { name, seed, verifier_key } = checkShape(keyShape, readJsonFile(path))
  const bytes = Buffer.from(seed, 'base64')
  const key = bytes.length === 32 && isKeyName(name) ? createSignerKey(name, 'witness', bytes) : undefined
  if (key?.text !== verifier_key) throw new Fault('usage', `${JSON.stringify(path)} is not the key of a witness`)
  return key
}

async function sign(given: Arguments): Promise<void> {
  const [folder] = given.words
  if (folder === undefined) throw new Fault('usage', 'Name the folder of the log; see: latchkey audit cosign --help')
  const logKey = given.options.verifierKey as unknown as VerifierKey | undefined
  if (logKey === undefined) throw new Fault('usage', 'Give the verifier key of the log with --verifier-key')
  const witness = readWitnessKey(fileOption(given, 'witnessKeyFile', '--witness-key-file'))
  const state = fileOption(given, 'stateFile', '--state-file')
  const known = existsSync(state) ? readTextFile(state) : undefined
  const signed = await cosign({ folder, logKey, witness, known, now: dependencies.now() })
  if ('refused' in signed) throw new Fault('conflict', `Not signed: ${explained[signed.refused]}`)
  // First the memory, then the signature: a witness must not forget what it signed.
  await replaceText(state, signed.note)
  print(given.options.json === true ? JSON.stringify(signed, null, 2) : signed.note.trimEnd())
}

const explained: Record<WitnessRefusal['refused'], string> = {
  malformed: 'the checkpoint is missing or damaged',
  other_log: 'the checkpoint, or the state, belongs to a log that the key does not sign',
  unsigned: 'the key has not signed the checkpoint',
  wrong_signature: 'the signature of the checkpoint is wrong',
  shorter: 'the log is shorter than the one that was signed before: entries were removed',
  inconsistent: 'the log does not continue the one that was signed before: it was rewritten',
  no_tiles: 'the folder lacks tiles between the old and the new checkpoint',
}
