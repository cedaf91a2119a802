// What a package for Linux installs: program, unit, manual page, completion, licenses and a first settings file.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../../package.json' with { type: 'json' }
import { root } from './compile.ts'
import { type Entry, gzip } from './entry.ts'

export type Package = {
  name: string
  version: string
  summary: string
  description: string
  license: string
  entries: readonly Entry[]
  /** Texts for `sh`. */
  scripts: { afterInstall: string; beforeRemove: string; afterRemove: string }
  /** Of every file, in seconds since 1970 UTC. */
  time: number
}

/** The files that differ from package to package. `manual` is the manual page in roff. */
export type Contents = { program: Uint8Array; licenses: string; manual: string; zshFolder: string; time: number }

const user = 'latchkey'

/** Returns the package. The service is neither enabled nor started: it needs settings and `latchkey init` first. */
export function packageOf({ program, licenses, manual, zshFolder, time }: Contents): Package {
  const deployed = (name: string) => readFileSync(join(root, 'scripts/deploy', name), 'utf8')
  const unit = deployed('latchkey.service').replaceAll('/usr/local/bin/', '/usr/bin/')
  const file = (path: string, content: string | Uint8Array, mode = 0o644): Entry => ({
    path,
    mode,
    content: typeof content === 'string' ? Buffer.from(content) : content,
  })
  const share = 'usr/share'
  const files = [
    file('etc/latchkey/latchkey.conf', settings, 0o640),
    file('usr/bin/latchkey', program, 0o755),
    file('usr/lib/systemd/system/latchkey.service', unit.replace(/^# .*\n/, '')),
    file(`${share}/bash-completion/completions/latchkey`, deployed('completion.bash')),
    file(`${share}/doc/latchkey/copyright`, licenses),
    file(`${share}/fish/vendor_completions.d/latchkey.fish`, deployed('completion.fish')),
    file(`${share}/man/man1/latchkey.1.gz`, gzip(Buffer.from(manual))),
    file(`${zshFolder}/_latchkey`, deployed('completion.zsh')),
  ]
  return {
    name: packageJson.name,
    version: packageJson.version,
    summary: packageJson.description,
    description:
      'Workloads exchange the JWT of their identity provider for a short-lived access token,\nand call inference servers with it.',
    license: 'LicenseRef-Latchkey',
    entries: [{ path: 'etc/latchkey/', mode: 0o750 }, { path: `${share}/doc/latchkey/`, mode: 0o755 }, ...files],
    scripts: { afterInstall, beforeRemove, afterRemove },
    time,
  }
}

const settings = `# Settings of the server: NAME=value lines. \`latchkey help configuration\` lists them.
LATCHKEY_DATABASE_URL=file:/var/lib/latchkey/latchkey.db
LATCHKEY_LISTEN=127.0.0.1:8787
# The address that clients use:
#LATCHKEY_BASE_URL=https://llm.example.com/v1
# The inference server:
#LATCHKEY_UPSTREAM_URL=http://127.0.0.1:8000/v1
`

const reloadUnits = 'if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n'

const afterInstall = `id -u ${user} >/dev/null 2>&1 ||
  useradd --system --user-group --home-dir /var/lib/latchkey --shell /usr/sbin/nologin ${user}
install -d -o ${user} -g ${user} -m 0700 /var/lib/latchkey
chgrp ${user} /etc/latchkey /etc/latchkey/latchkey.conf
${reloadUnits}`

const beforeRemove = 'if [ -d /run/systemd/system ]; then systemctl disable --now latchkey.service || true; fi\n'

/** Data, settings that were changed, and the user stay. */
const afterRemove = reloadUnits
