// A software bill of materials in CycloneDX 1.6. It has no time and no random number, so equal programs have equal ones.

export type Component = {
  type: 'library' | 'platform'
  name: string
  version?: string
  purl?: string
  cpe?: string
  /** An SPDX identifier, or words. */
  license?: string
  /** `sha512-` and base64, as in a lock file. */
  integrity?: string
  /** Whom a license text names that comes without a file. */
  author?: string
  licenseText?: string
  parts?: Component[]
}

export type Subject = { name: string; version: string; commit: string }

/** Returns the bill of materials of a program with these components. */
export function createSbom(program: Subject, components: readonly Component[]): object {
  const reference = `pkg:generic/${program.name}@${program.version}`
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': reference,
        name: program.name,
        version: program.version,
        purl: reference,
        properties: [{ name: 'latchkey:commit', value: program.commit }],
      },
    },
    components: components.map((component) => toJson(component)),
    dependencies: [{ ref: reference, dependsOn: components.map((component) => referenceOf(component)) }],
  }
}

function toJson(component: Component, inside = ''): object {
  const { type, name, version, purl, cpe, license, integrity, parts } = component
  return {
    type,
    'bom-ref': referenceOf(component, inside),
    name,
    ...(version === undefined ? {} : { version }),
    ...(integrity === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: toHex(integrity) }] }),
    ...(license === undefined
      ? {}
      : { licenses: [{ license: license.includes(' ') ? { name: license } : { id: license } }] }),
    ...(cpe === undefined ? {} : { cpe }),
    ...(purl === undefined ? {} : { purl }),
    ...(parts === undefined ? {} : { components: parts.map((part) => toJson(part, `${name}/`)) }),
  }
}

function referenceOf({ purl, name }: Component, inside = ''): string {
  return `${inside}${purl ?? name}`
}

function toHex(integrity: string): string {
  return Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
}
