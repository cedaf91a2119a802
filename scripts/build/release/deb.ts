// Packages for Debian and Ubuntu (deb(5)): an `ar` archive with the format's version, what dpkg must know, and the files.
import { createHash } from 'node:crypto'
import { type Entry, gzip, isFolder, padding } from './entry.ts'
import type { Package } from './package.ts'
import { tar } from './tar.ts'

/** Returns the package. */
export function deb({ name, version, summary, description, entries, scripts, time }: Package, arch: string): Buffer {
  const files = entries.filter((entry) => !isFolder(entry))
  const kilobytes = Math.ceil(files.reduce((sum, { content }) => sum + (content?.length ?? 0), 0) / 1024)
  const fields = {
    Package: name,
    Version: version,
    Architecture: arch,
    Maintainer: 'Latchkey <root@localhost>',
    'Installed-Size': kilobytes,
    Depends: 'libc6 (>= 2.18), libgcc-s1, passwd',
    Section: 'net',
    Priority: 'optional',
    Description: [summary, ...description.split('\n').map((line) => ` ${line || '.'}`)].join('\n'),
  }
  const md5 = (content: Uint8Array = new Uint8Array()) => createHash('md5').update(content).digest('hex')
  const lines = (texts: readonly string[]) => Buffer.from(texts.map((text) => `${text}\n`).join(''))
  const control: Entry[] = [
    {
      path: './control',
      mode: 0o644,
      content: lines(Object.entries(fields).map(([key, value]) => `${key}: ${value}`)),
    },
    { path: './md5sums', mode: 0o644, content: lines(files.map(({ path, content }) => `${md5(content)}  ${path}`)) },
    { path: './conffiles', mode: 0o644, content: lines(files.filter(isSetting).map(({ path }) => `/${path}`)) },
    ...Object.entries({
      postinst: `[ "$1" = configure ] || exit 0\n${scripts.afterInstall}`,
      prerm: `[ "$1" = remove ] || exit 0\n${scripts.beforeRemove}`,
      postrm: scripts.afterRemove,
    }).map(([path, text]) => ({ path: `./${path}`, mode: 0o755, content: Buffer.from(`#!/bin/sh\nset -e\n${text}`) })),
  ]
  const data = withFolders(entries).map((entry) => ({ ...entry, path: `./${entry.path}` }))
  return ar(time, [
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzip(tar({ entries: control, time }))],
    ['data.tar.gz', gzip(tar({ entries: data, time }))],
  ])
}

/** dpkg creates no folder that the package does not name. */
function withFolders(entries: readonly Entry[]): Entry[] {
  const named = new Map<string, Entry>([['', { path: '', mode: 0o755 }]])
  for (const entry of entries) {
    const parts = entry.path.replace(/\/$/, '').split('/').slice(0, -1)
    for (const index of parts.keys()) {
      const path = `${parts.slice(0, index + 1).join('/')}/`
      if (!named.has(path)) named.set(path, { path, mode: 0o755 })
    }
    named.set(entry.path, entry)
  }
  return [...named.values()]
}

/** Files under /etc are settings of the admin: an upgrade leaves changed ones alone. */
export const isSetting = (entry: Entry) => entry.path.startsWith('etc/') && !isFolder(entry)

function ar(time: number, members: readonly [name: string, content: Buffer][]): Buffer {
  const parts = members.flatMap(([name, content]) => {
    const fields = [name.padEnd(16), String(time).padEnd(12), '0'.padEnd(6), '0'.padEnd(6), '100644'.padEnd(8)]
    return [
      Buffer.from(`${fields.join('')}${String(content.length).padEnd(10)}\`\n`),
      content,
      padding(content.length, 2),
    ]
  })
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
}
