// The license texts of everything inside a program, as one text. Packages bring their own; for others, the standard text
// of their license is used.
import { createRequire } from 'node:module'
import type { Component } from './cyclonedx.ts'

type Standard = { licenseText: string }

/** Their standard texts name the owner of one copyright. Each component names its own. */
const withCopyright = ['BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'Zlib']

const rule = '='.repeat(100)

/** Returns the texts: one section for each component, then the standard texts that they refer to, each once. */
export function writeLicenses(components: readonly Component[]): string {
  const referred = new Set(components.flatMap(licensesWithoutText))
  const standard = [...referred].toSorted().map((license) => section(`The text of ${license}`, standardText(license)))
  const own = section(
    'Latchkey',
    'All rights reserved. The program contains the parts below, under their own licenses.',
  )
  return `${[own, ...components.map(describe), ...standard].join('\n\n')}\n`
}

function licensesWithoutText({ license, licenseText, parts = [] }: Component): string[] {
  const above = licenseText === undefined && license !== undefined && !license.includes(' ') ? [license] : []
  return [...above, ...parts.flatMap(licensesWithoutText)]
}

function describe({ name, version, license, licenseText, author, parts = [] }: Component): string {
  const heading = `${name} ${version} (${license})`
  const text = licenseText ?? `Copyright (c) ${author}\nThe text of ${license} is below.`
  if (parts.length === 0) return section(heading, text)
  const listed = parts.map((part) =>
    `  ${part.name} ${part.version ?? ''} ${part.license ?? ''}`.replaceAll(/ +$/g, ''),
  )
  const source =
    name === 'bun' ? `\n${relinking}` : '\nIts publisher names no licenses of the Rust packages that it contains.'
  return section(heading, `${text}\n\nIt contains:\n${listed.join('\n')}\n${source}`)
}

const relinking = `JavaScriptCore and tinycc are under the LGPL. The source of the runtime, and of the libraries that it contains, is at
https://github.com/oven-sh/bun and https://github.com/oven-sh/WebKit; you may change them and build the program again with
the changed runtime.`

/** @throws if the license is not in the SPDX list */
function standardText(license: string): string {
  const { licenseText } = createRequire(import.meta.url)(`spdx-license-list/licenses/${license}.json`) as Standard
  return (withCopyright.includes(license) ? licenseText.replaceAll(/^copyright \(c\).*\n+/gim, '') : licenseText).trim()
}

function section(heading: string, text: string): string {
  return `${rule}\n${heading}\n${rule}\n\n${text}`
}
