// `latchkey jwks`: packs the keys of issuers as signed bundles, on a machine that can reach them. It needs no database.
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { basename, extname, resolve } from 'node:path'
import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { Fault } from '../src/fault.ts'
import { keyBundleFileCharactersMax, keyBundlesAtOnceMax } from '../src/federation/issuer/key-bundle.ts'
import { type PackDependencies, packKeys } from '../src/federation/issuer/pack-keys.ts'
import { createPackerKey, isBundleAlgorithm, readPackerKey } from '../src/federation/issuer/packer-key.ts'
import { readCertificateDigest } from '../src/runtime/peer-certificate.ts'
import { readDuration } from '../src/values/duration-text.ts'
import {
  command,
  dependencies,
  givenTo,
  group,
  print,
  readConfig,
  runAlone,
  withSettings,
} from './shared/command-line.ts'
import { readJsonFile, readTextFile } from './shared/input-files.ts'
import { few, printable, record } from './shared/render.ts'

export function jwksCommand(): Command {
  return group('jwks', 'Sign the keys of issuers for servers that cannot reach them', [keygenCommand(), packCommand()])
}

function keygenCommand(): Command {
  const made = command('keygen', 'Create the key pair of a packer', ['jwks keygen --out packer.key'])
    .requiredOption('--out <file>', 'file for the private key; the public key gets the same name with .pub')
    .option('--algorithm <name>', 'EdDSA or ES256', algorithmName, 'EdDSA')
  return withSettings(made, { shown: [] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const path = String(options.out)
    const publicPath = `${path.slice(0, path.length - extname(path).length)}.pub`
    if (publicPath === path)
      throw new Fault('usage', '--out names the file of the private key: choose a name that does not end in .pub')
    const { privateJwk, publicJwk, keyId, algorithm } = await createPackerKey(algorithmName(String(options.algorithm)))
    for (const each of [path, publicPath])
      if (existsSync(each)) throw notCreated(each, 'it exists; choose another name')
    writeNew(path, `${JSON.stringify({ ...privateJwk, kid: keyId })}\n`, 0o600)
    writeNew(publicPath, `${JSON.stringify({ ...publicJwk, kid: keyId })}\n`, 0o644)
    const shown = { private_key_file: path, public_key_file: publicPath, algorithm, key_id: keyId }
    print(
      options.json === true
        ? JSON.stringify(shown, null, 2)
        : [
            record({ 'private key': path, 'public key': publicPath, algorithm, 'key id': keyId }),
            '',
            `Bring ${publicPath} to the server and run: latchkey bundle-signers add --name NAME --public-key-file ${publicPath}`,
          ].join('\n'),
    )
  })
}

function algorithmName(text: string) {
  if (!isBundleAlgorithm(text)) throw new InvalidArgumentError('use EdDSA or ES256')
  return text
}

/** Never replaces a file: the key in it may be in use. */
function writeNew(path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { flag: 'wx', mode })
    chmodSync(path, mode)
  } catch (error) {
    throw notCreated(path, (error as Error).message)
  }
}

function notCreated(path: string, why: string): Fault {
  return new Fault('usage', `${JSON.stringify(path)} cannot be created: ${why}`)
}

function packCommand(): Command {
  const made = command('pack', 'Fetch the keys of issuers and sign them', [
    'jwks pack --issuer-url https://token.actions.githubusercontent.com --private-key-file packer.key --valid 30d --out keys.bundle',
  ])
    .requiredOption('--issuer-url <url...>', 'issuer URLs, exactly as in the iss claim')
    .requiredOption('--private-key-file <file>', 'private key of the packer')
    .requiredOption('--valid <duration>', 'how long servers may use the keys, for example 30d', validity)
    .requiredOption('--out <file>', 'file for the bundles')
    .option('--jwks-url <url>', 'fetch the keys of the only issuer from this URL instead of by discovery')
    .option('--ca-file <file>', 'certificates (PEM) to trust when fetching, instead of the public ones')
    .option('--packer <name>', 'name of the packer in the bundle (default: the name of the key file)')
    .option(
      '--sequence <number>',
      'number of the bundles; servers accept only greater ones (default: seconds since 1970)',
      sequenceNumber,
    )
  const shown = ['LATCHKEY_ISSUER_NETWORKS', 'LATCHKEY_INSECURE_ISSUERS'] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const issuers = [...new Set((options.issuerUrl as unknown as string[]).map(String))]
    if (issuers.length > keyBundlesAtOnceMax)
      throw new Fault('usage', `Pack at most ${keyBundlesAtOnceMax} issuers at once`)
    if (options.jwksUrl !== undefined && issuers.length > 1) throw new Fault('usage', '--jwks-url is for one issuer')
    const keyPath = String(options.privateKeyFile)
    const path = String(options.out)
    if (resolve(path) === resolve(keyPath)) throw new Fault('usage', '--out would replace the key: choose another name')
    const key = await readPackerKey(readJsonFile(keyPath))
    const common = {
      jwksUrl: typeof options.jwksUrl === 'string' ? options.jwksUrl : null,
      caPem: typeof options.caFile === 'string' ? readTextFile(options.caFile) : null,
      packer: String(options.packer ?? basename(keyPath, extname(keyPath))),
      validSeconds: Number(options.valid),
      sequence: Number(options.sequence ?? Math.floor(dependencies.now() / 1_000)),
    }
    const packed = []
    for (const issuerUrl of issuers)
      packed.push({ issuer_url: issuerUrl, ...(await packKeys({ ...common, issuerUrl }, key, packing(options))) })
    writeBundles(
      path,
      packed.map(({ bundle }) => bundle),
    )
    const expiresAt = new Date(dependencies.now() + common.validSeconds * 1_000).toISOString()
    const summary = packed.map(({ issuer_url, keys }) => ({ issuer_url, keys }))
    const result = { file: path, key_id: key.keyId, sequence: common.sequence, expires_at: expiresAt, data: summary }
    print(options.json === true ? JSON.stringify(result, null, 2) : draw(result))
  })
}

function packing(options: Parameters<typeof readConfig>[0]): PackDependencies {
  const { insecureIssuers, issuerNetworks } = readConfig(options)
  const { fetch, resolve, usesProxy, now } = dependencies
  const outbound = { fetch, resolve, usesProxy, insecureIssuers, privateNetworks: () => issuerNetworks }
  // A proxy makes the connections, and its own may be the only way out.
  return { outbound, now, readCertificateDigest: usesProxy ? async () => undefined : readCertificateDigest }
}

function writeBundles(path: string, bundles: string[]): void {
  const text = `${JSON.stringify({ bundles }, null, 2)}\n`
  if (text.length >= keyBundleFileCharactersMax)
    throw new Fault(
      'usage',
      `The bundles are longer than the ${keyBundleFileCharactersMax} characters that a server imports`,
      {
        hint: ': pack fewer issuers at once',
      },
    )
  try {
    writeFileSync(path, text)
    chmodSync(path, 0o644)
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} cannot be written: ${(error as Error).message}`)
  }
}

type PackResult = { file: string; sequence: number; expires_at: string; data: { issuer_url: string; keys: Keys }[] }
type Keys = { kid: string | null; algorithm: string }[]

function draw({ file, sequence, expires_at, data }: PackResult): string {
  const lines = data.map(({ issuer_url, keys }) => {
    const names = keys.map(({ kid, algorithm }) => `${printable(kid ?? '(no kid)')} ${algorithm}`)
    return `✓ ${printable(issuer_url)}: ${few(names, 10)}`
  })
  return [
    ...lines,
    '',
    record({ file, sequence, 'expires (UTC)': expires_at.slice(0, 19).replace('T', ' ') }),
    '',
    `Bring ${file} to the server and run: latchkey issuers import ${file}`,
  ].join('\n')
}

function sequenceNumber(text: string): string {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('use a whole number, 0 or more')
  return text
}

const validDaysMax = 366

function validity(text: string): string {
  const seconds = (readDuration(text) ?? 0) / 1_000
  if (Number.isInteger(seconds) && seconds > 0 && seconds <= validDaysMax * 86_400) return String(seconds)
  throw new InvalidArgumentError(`use a duration such as 12h or 30d, and at most ${validDaysMax}d`)
}

if (import.meta.main) await runAlone(jwksCommand())
