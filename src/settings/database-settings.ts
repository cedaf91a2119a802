// The rows of the table of settings that are about the database.
import type { Setting } from './setting.ts'

export const databaseSettings = [
  {
    env: 'LATCHKEY_DATABASE_URL',
    value: 'URL',
    help: 'the database: file:PATH, or what several nodes share: the https:// URL of a libSQL server, or rqlite://HOST:PORT,HOST:PORT,HOST:PORT',
    default: 'file:latchkey-data/latchkey.db',
  },
  {
    env: 'LATCHKEY_DATABASE_SYNCHRONOUS',
    value: 'MODE',
    help: 'normal survives a killed process, full survives power loss too',
    default: 'normal',
  },
  {
    env: 'LATCHKEY_DATABASE_TOKEN',
    value: 'TOKEN',
    help: 'token for the database server, or user:password of rqlite; set it in the environment, because other users can read flags',
    isSecret: true,
  },
  {
    env: 'LATCHKEY_DATABASE_TOKEN_FILE',
    value: 'FILE',
    help: 'file with the token for the database server, or with user:password of rqlite',
  },
  {
    env: 'LATCHKEY_DATABASE_CA_FILE',
    value: 'FILE',
    help: 'certificates (PEM) to trust for the database server instead of the public ones',
  },
  {
    env: 'LATCHKEY_DATABASE_CERT_FILE',
    value: 'FILE',
    help: 'certificate chain (PEM) that this node shows to the database server; set the key file too',
  },
  {
    env: 'LATCHKEY_DATABASE_KEY_FILE',
    value: 'FILE',
    help: 'private key (PEM) of that certificate',
  },
  {
    env: 'LATCHKEY_DATABASE_GRACE',
    value: 'DURATION',
    help: 'how long inference without budgets is served while the database server is away, from 1s to 5m; changes are not obeyed meanwhile',
    default: '0',
  },
  {
    env: 'LATCHKEY_DATABASE_GRACE_DIR',
    value: 'DIR',
    help: 'folder where usage waits for the database server (default: that of the master key file)',
  },
] as const satisfies Setting[]
