// Images of containers as one file: an archive in the OCI image layout 1.0, which podman, docker, skopeo and registries take.
import { createHash } from 'node:crypto'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Architecture } from './debian-libraries.ts'
import { type Entry, gzip } from './entry.ts'
import { tar } from './tar.ts'

/** The image of one platform: the archives of its libraries and the program. */
export type Image = { architecture: Architecture; libraries: readonly Buffer[]; program: Uint8Array }
/** `time` in seconds since 1970 UTC. */
export type Build = { commit: string; time: number }

type Descriptor = { mediaType: string; digest: string; size: number }
const media = (kind: string) => `application/vnd.oci.image.${kind}`
/** The number of the user, the same as in `service print container`. */
const user = 65_532

/** Returns the archive. It has one image for each platform under one name. */
export function ociArchive(images: readonly Image[], { commit, time }: Build): Buffer {
  const blobs = new Map<string, Buffer>()
  const add = (kind: string, content: Buffer): Descriptor => {
    const hex = createHash('sha256').update(content).digest('hex')
    blobs.set(hex, content)
    return { mediaType: media(kind), digest: `sha256:${hex}`, size: content.length }
  }
  const addJson = (kind: string, value: object) => add(kind, Buffer.from(JSON.stringify(value)))
  const labels = {
    'org.opencontainers.image.title': packageJson.name,
    'org.opencontainers.image.version': packageJson.version,
    'org.opencontainers.image.revision': commit,
  }
  const created = new Date(time * 1_000).toISOString()

  const addImage = ({ architecture, libraries, program }: Image) => {
    const layers = [
      ...libraries,
      tar({ entries: [...ownFiles, { path: programPath, mode: 0o755, content: program }], time }),
    ]
    const config = addJson('config.v1+json', {
      created,
      architecture,
      os: 'linux',
      config: { ...settings, Labels: labels },
      rootfs: {
        type: 'layers',
        diff_ids: layers.map((layer) => `sha256:${createHash('sha256').update(layer).digest('hex')}`),
      },
    })
    const manifest = {
      schemaVersion: 2,
      mediaType: media('manifest.v1+json'),
      config,
      layers: layers.map((layer) => add('layer.v1.tar+gzip', gzip(layer))),
      annotations: labels,
    }
    return { ...addJson('manifest.v1+json', manifest), platform: { architecture, os: 'linux' } }
  }
  const manifests = images.map(addImage)
  const index = { schemaVersion: 2, mediaType: media('index.v1+json'), manifests }
  const named = {
    ...addJson('index.v1+json', index),
    annotations: {
      'org.opencontainers.image.ref.name': `${packageJson.name}:${packageJson.version}`,
      'io.containerd.image.name': `localhost/${packageJson.name}:${packageJson.version}`,
    },
  }
  const file = (path: string, content: Buffer): Entry => ({ path, mode: 0o644, content })
  const entries = [
    file('oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}')),
    file('index.json', Buffer.from(JSON.stringify({ ...index, manifests: [named] }))),
    { path: 'blobs/', mode: 0o755 },
    { path: 'blobs/sha256/', mode: 0o755 },
    ...[...blobs].toSorted().map(([hex, content]) => file(`blobs/sha256/${hex}`, content)),
  ]
  return tar({ entries, time })
}

const programPath = 'usr/local/bin/latchkey'

/** What the program expects of a system, and a folder for its data. */
const ownFiles: readonly Entry[] = [
  { path: 'etc/', mode: 0o755 },
  { path: 'etc/group', mode: 0o644, content: Buffer.from(`root:x:0:\nlatchkey:x:${user}:\n`) },
  {
    path: 'etc/passwd',
    mode: 0o644,
    content: Buffer.from(
      `root:x:0:0:root:/root:/sbin/nologin\nlatchkey:x:${user}:${user}::/var/lib/latchkey:/sbin/nologin\n`,
    ),
  },
  { path: 'tmp/', mode: 0o1777 },
  { path: 'var/lib/latchkey/', mode: 0o700, owner: user },
  { path: 'usr/local/bin/', mode: 0o755 },
]

const settings = {
  User: `${user}:${user}`,
  ExposedPorts: { '8787/tcp': {} },
  Env: [
    'PATH=/usr/local/bin',
    'LATCHKEY_DATABASE_URL=file:/var/lib/latchkey/latchkey.db',
    'LATCHKEY_LISTEN=0.0.0.0:8787',
    'TMPDIR=/tmp',
  ],
  Entrypoint: [`/${programPath}`],
  Cmd: ['serve'],
  Volumes: { '/var/lib/latchkey': {} },
  WorkingDir: '/var/lib/latchkey',
  StopSignal: 'SIGTERM',
}
