// A process that restores a backup and is killed after a number of steps: `bun killed-restore.ts STEPS FILE`, with the settings in its
// environment. It prints how many steps there are.
import { takeOver } from '../../db/file/take-over.ts'
import { planReplacement } from '../../src/backup/restore.ts'
import { verifyBackup } from '../../src/backup/verify.ts'
import { loadConfig } from '../../src/settings/config.ts'

const [stepsText = '', file = ''] = process.argv.slice(2)
const { databasePath, masterKey } = loadConfig({ flags: {}, environment: process.env })
const old = await takeOver(databasePath)
const scratch = `${databasePath}.restoring-00000000`
const { checks } = await verifyBackup({ file, scratch, masterKey, withoutMasterKey: false, now: Date.now })
if (checks.some(({ result }) => result !== 'ok')) throw new Error(JSON.stringify(checks))
const { steps } = planReplacement(databasePath, scratch, old, Date.now())
for (const step of steps.slice(0, Number(stepsText))) await step()
process.stdout.write(`${steps.length}\n`)
process.kill(process.pid, 'SIGKILL')
