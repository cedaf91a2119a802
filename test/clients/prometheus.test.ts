// A real Prometheus scrapes a real server: promtool accepts the metrics and the rules, and every panel of the dashboard has data.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dashboard } from '../../scripts/deploy/grafana-dashboard.ts'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { type Family, families } from '../../src/observe/metric-families.ts'
import {
  type Federation,
  listenLocally,
  type Row,
  runCommand,
  startFederation,
  temporaryFolder,
  upstreamApiKey,
} from '../support/latchkey.ts'
import { hasPrometheus, type RealPart, startPrometheus } from '../support/real-parts.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

const needs = '(needs prometheus and promtool)'
const rulesFile = join(import.meta.dirname, '../../scripts/deploy/prometheus-alerts.yml')
const rules = await Bun.file(rulesFile).text()
const unusedUrl = 'http://127.0.0.1:9/v1'

const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
/** As Grafana puts its variables in. */
const inGrafana = (expr: string) =>
  expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$organization', '.*')
    .replaceAll('$job', 'latchkey')
    .replaceAll('$instance', '.*')

describe('the dashboard', () => {
  const shown = dashboard.panels

  test('gives each panel a number and its own place', () => {
    const cells = shown.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(Math.max(...shown.map(({ gridPos: { x, w } }) => x + w))).toBe(24)
    expect(new Set(shown.map(({ id }) => id)).size).toBe(shown.length)
  })

  test('names the queries of a panel A, B …, and each asks the chosen data source', () => {
    for (const { targets = [] } of shown)
      expect(targets).toEqual(
        targets.map((target, index) => ({
          ...target,
          refId: 'ABCDEFGH'.charAt(index),
          // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana puts in the variable.
          datasource: { type: 'prometheus', uid: '${datasource}' },
        })),
      )
    expect(shown.some(({ targets = [] }) => targets.length > 1)).toBe(true)
  })
})

describe('the dashboard and the rules', () => {
  test('name metrics that exist, and the dashboard shows each of them', () => {
    const known = Object.values<Family>(families).map(({ name }) => name)
    const namedIn = (text: string) =>
      new Set(
        [...text.matchAll(/\b(?:latchkey|process)_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, '')),
      )
    const shown = namedIn(queries.map(({ expr }) => expr).join('\n'))
    expect([...shown].toSorted()).toEqual(known.toSorted())
    const alerted = [...rules.matchAll(/expr: ([\s\S]*?)\n +(?:for|labels):/g)].map(([, expr]) => expr ?? '')
    expect(alerted.length).toBeGreaterThan(8)
    expect([...namedIn(alerted.join('\n'))].filter((name) => !known.includes(name))).toEqual([])
  })

  test('keep installations apart: the dashboard by job and instance, and the rules by job', () => {
    const selectors = queries.flatMap(({ expr }) => expr.match(/\b(?:latchkey|process)_\w+(?:\{[^}]*\})?/g) ?? [])
    // The newest change of all nodes is that of every instance.
    const ofAll = 'latchkey_revision{job="$job"}'
    const mixed = selectors.filter((each) => each !== ofAll && !/\{job="\$job", instance=~"\$instance"/.test(each))
    expect(mixed).toEqual([])
    expect(rules.match(/\b(?:sum|max|min|avg|count)\b(?! (?:by \(job, |without \(instance\)))/g)).toBeNull()
  })

  test.skipIf(!hasPrometheus)(`go off for what they are for, at the site where it happens ${needs}`, async () => {
    const folder = temporaryFolder()
    const file = join(folder.path, 'rules-test.yml')
    writeFileSync(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests: ruleTests }))
    const checked = await runCommand([], { cwd: folder.path, program: ['promtool', 'test', 'rules', file] })
    folder.remove()
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('SUCCESS') })
  })
})

type TestedSeries = [name: string, labels: string, troubled: string, fine: string]

/** Two installations with the same names; only the first has the trouble, and the alert is for it alone. */
function ruleTest(alertname: string, series: TestedSeries[], at = '40m') {
  const input_series = series.flatMap(([name, labels, ...values]) =>
    values.map((each, index) => ({
      series: `${name}{job="job-${index}",instance="i${index}"${labels === '' ? '' : `,${labels}`}}`,
      values: each,
    })),
  )
  const firing = `sum by (alertname, job) (ALERTS{alertstate="firing",alertname="${alertname}"})`
  const exp_samples = [{ labels: `{alertname="${alertname}",job="job-0"}`, value: 1 }]
  return { interval: '1m', input_series, promql_expr_test: [{ expr: firing, eval_time: at, exp_samples }] }
}

/** The same value for days. */
const steady = (value: number | string) => `${value}+0x300`
const ofIssuer = 'organization="acme",issuer="idp"'
const ofKey = 'organization="acme",key="ci"'
const ofExchanges = 'organization="acme",outcome'
const ruleTests = [
  // However small the site: six refused exchanges of seven are an alert, one refused of two is not.
  ruleTest(
    'LatchkeyExchangesRefused',
    [
      ['latchkey_exchanges_total', `${ofExchanges}="refused",reason="expired"`, '0 0 1 2 3 4 5 6+0x40', '0 0 1+0x45'],
      ['latchkey_exchanges_total', `${ofExchanges}="issued"`, '0 1+0x46', '0 1+0x46'],
    ],
    '20m',
  ),
  ruleTest('LatchkeyDiskNearlyFull', [['latchkey_disk_free_bytes', 'disk="data"', steady(1e8), steady(5e9)]]),
  ruleTest('LatchkeyIssuerWithoutKeys', [['latchkey_issuer_keys_usable', ofIssuer, steady(0), steady(1)]]),
  // One failed fetch of keys that nobody needs says nothing.
  ruleTest('LatchkeyIssuerFetchFails', [['latchkey_issuer_fetch_failures_in_a_row', ofIssuer, steady(3), steady(1)]]),
  ruleTest('LatchkeyBudgetSpent', [
    ['latchkey_key_spent_usd', ofKey, steady(5), steady(4.5)],
    ['latchkey_key_limit_usd', ofKey, steady(5), steady(5)],
  ]),
  ruleTest('LatchkeyBudgetNearlySpent', [
    ['latchkey_key_spent_usd', ofKey, steady(4.5), steady(5)],
    ['latchkey_key_limit_usd', ofKey, steady(5), steady(5)],
  ]),
  ruleTest(
    'LatchkeyBackupOld',
    [
      ['latchkey_backup_last_success_timestamp_seconds', '', steady(0), '0+60x300'],
      ['latchkey_backup_interval_seconds', '', steady(3_600), steady(3_600)],
    ],
    '4h',
  ),
  ruleTest(
    'LatchkeyBackupOld',
    [
      ['latchkey_backup_last_success_timestamp_seconds', '', '_x300', '0+60x300'],
      ['latchkey_backup_interval_seconds', '', steady(3_600), steady(3_600)],
    ],
    '4h',
  ),
  ruleTest(
    'LatchkeySigningKeyStuck',
    [['latchkey_signing_key_rotation_due_timestamp_seconds', '', steady(-1e6), steady(1e9)]],
    '2h',
  ),
  ruleTest('LatchkeyCertificateExpires', [
    ['latchkey_tls_certificate_expire_timestamp_seconds', '', steady(86_400), steady(1e9)],
  ]),
  ruleTest('LatchkeyOpenFiles', [
    ['process_open_fds', '', steady(900), steady(500)],
    ['process_max_fds', '', steady(1_024), steady(1_024)],
    ['latchkey_build_info', '', steady(1), steady(1)],
  ]),
  ruleTest('LatchkeyInferenceFails', [
    ['latchkey_inference_requests_total', 'code="5xx"', '0+2x60', steady(0)],
    ['latchkey_inference_requests_total', 'code="2xx"', '0+2x60', '0+9x60'],
  ]),
  ruleTest('LatchkeyCredentialsRefused', [['latchkey_refusals_total', 'reason="key_unknown"', '0+60x60', '0+1x60']]),
  ruleTest('LatchkeyDoctorFindings', [['latchkey_doctor_findings', 'level="error"', steady(1), steady(0)]]),
  ruleTest('LatchkeyQueueLong', [
    ['latchkey_queue_length', 'upstream="gpu"', steady(9), steady(8)],
    ['latchkey_upstream_running', 'upstream="gpu"', steady(2), steady(2)],
  ]),
  ruleTest('LatchkeyUpstreamResting', [['latchkey_upstream_resting', 'upstream="gpu"', steady(1), steady(0)]]),
  ruleTest('LatchkeyUpstreamDown', [['latchkey_upstream_up', 'upstream="gpu"', steady(0), steady(1)]]),
  ruleTest('LatchkeyDatabaseServerDown', [
    ['latchkey_database_server_up', 'server="a:4001"', '1+0x30 0+0x20', '1+0x38 0 1+0x9'],
  ]),
  ruleTest('LatchkeyDatabaseLeaderChanges', [
    ['latchkey_database_leader_changes_total', '', '0+0x30 0+1x20', '0+0x38 2+0x20'],
  ]),
  ruleTest('LatchkeyDatabaseReplicaBehind', [
    ['latchkey_database_server_behind_entries', 'server="a:4001"', steady(1_500), '9+0x37 1500+0x2 9+0x9'],
  ]),
  ruleTest('LatchkeyDatabaseDiskNearlyFull', [
    ['node_filesystem_avail_bytes', 'mountpoint="/var/lib/rqlite"', steady(24), steady(26)],
    ['node_filesystem_size_bytes', 'mountpoint="/var/lib/rqlite"', steady(100), steady(100)],
  ]),
  ruleTest('LatchkeyServesWithoutDatabase', [['latchkey_database_grace', '', '0+0x37 1 0+0x9', steady(0)]]),
  ruleTest('LatchkeyUsageWaits', [['latchkey_usage_waiting_rows', '', steady(3), '0+0x30 3+0x4 0+0x9']]),
  ruleTest('LatchkeyNodesLost', [['latchkey_live_nodes', '', '3+0x25 2+0x40', steady(3)]]),
  {
    interval: '1m',
    input_series: [
      { series: 'latchkey_revision{job="a",instance="ahead"}', values: steady(8) },
      { series: 'latchkey_revision{job="a",instance="behind"}', values: steady(7) },
      { series: 'latchkey_revision{job="b",instance="other"}', values: steady(3) },
    ],
    promql_expr_test: [
      {
        expr: 'sum by (job, instance) (ALERTS{alertstate="firing",alertname="LatchkeyNodeBehind"})',
        eval_time: '10m',
        exp_samples: [{ labels: '{job="a",instance="behind"}', value: 1 }],
      },
    ],
  },
]

describe('Prometheus', () => {
  const backups = temporaryFolder()
  let federation: Federation
  let prometheus: RealPart
  let target: string
  beforeAll(async () => {
    if (!hasPrometheus) return
    // The first upstream is down, so that a request has to go on to the second.
    federation = await startFederation({
      upstreamUrl: unusedUrl,
      settings: {
        LATCHKEY_METRICS_LISTEN: '127.0.0.1:0',
        ...(isServerKind ? {} : { LATCHKEY_BACKUP_DIR: backups.path }),
        LATCHKEY_RETAIN_USAGE_DAYS: '1',
        LATCHKEY_ARCHIVE_DIR: backups.path,
      },
    })
    const { admin, server } = federation
    const echo = await listenLocally(createEchoUpstream(upstreamApiKey))
    const silent = await listenLocally(async () => Response.json({}))
    stopUpstreams = () => Promise.all([echo.listener.drain(), silent.listener.drain()])
    await admin('upstreams.add', { name: 'silent', base_url: silent.url, models: ['silent'], probe_path: '/health' })
    await admin('upstreams.add', {
      name: 'echo',
      base_url: `${echo.url}/v1`,
      models: ['m'],
      credential: upstreamApiKey,
    })
    await admin('prices.set', { prices: [{ model: 'm', prompt: 1, completion: 2 }] })
    await admin('keys.update', { key: 'target', limit: 5 })
    const address = server.metricsAddress
    if (address === undefined || 'socketPath' in address) throw new Error('Metrics are not served')
    target = `127.0.0.1:${address.port}`
    const { retention, findingCounts } = server.context
    findingCounts.note((await admin<Row & { findings: { level: string }[] }>('doctor.examine', {})).findings)
    await until('an archive run in a quiet moment', async () => {
      await retention.runWhenDue()
      return retention.lastSuccessAt() !== undefined
    })
    prometheus = await startPrometheus(target, rulesFile)
  })
  afterAll(async () => {
    await prometheus?.stop()
    await federation?.stop()
    backups.remove()
    await stopUpstreams?.()
  })
  let stopUpstreams: (() => Promise<unknown>) | undefined

  /** An exchange, a refused one, an inference request, one without usage, one that fails, and one that is refused. */
  async function use(): Promise<void> {
    const { exchange, mint, key, server } = federation
    const infer = (model: string, credential = key.key) =>
      fetch(`${server.baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
      })
    const statuses = [
      (await exchange(await mint())).status,
      (await exchange(await mint({ sub: 'someone' }))).status,
      (await infer('m')).status,
      (await infer('silent')).status,
      (await infer('unserved')).status,
      (await infer('m', 'none')).status,
    ]
    expect(statuses).toEqual([200, 400, 200, 200, 502, 401])
  }

  type Result = { metric: Record<string, string>; value: [number, string] }
  async function query(expr: string): Promise<Result[]> {
    const response = await fetch(`${prometheus.url}/api/v1/query?query=${encodeURIComponent(expr)}`)
    const { data, error } = (await response.json()) as { data?: { result: Result[] }; error?: string }
    if (data === undefined) throw new Error(`${expr}: ${error}`)
    return data.result
  }

  test.skipIf(!hasPrometheus)(`accepts the metrics and the rules ${needs}`, async () => {
    await use()
    const folder = temporaryFolder()
    const file = join(folder.path, 'metrics.txt')
    writeFileSync(file, await (await fetch(`http://${target}/metrics`)).text())
    const check = (program: string[]) => runCommand([], { cwd: folder.path, program })
    const metrics = await check(['sh', '-c', `promtool check metrics < ${file}`])
    expect(metrics).toEqual({ code: 0, stdout: '', stderr: '' })
    const checked = await check(['promtool', 'check', 'rules', rulesFile])
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('SUCCESS') })
    folder.remove()
  })

  const ofNodes = [
    ...['Looks at the database server', 'Admin changes that a node has not seen', 'Live nodes'],
    ...['Serves without the database', 'Usage that waits for the database'],
    ...['Servers of the database', 'Leader of the database', 'Entries that a server lacks'],
    ...['Size of the database at each server', 'Elections in the database cluster'],
  ]
  const ofFiles = ['Write-ahead log', 'Age of the newest backup', 'Scheduled time between backups']
  // No request waits for a place here.
  const withoutWitness = 'Age of the checkpoint that a witness has'
  const ofOtherKind = [
    ...['Wait for a place', withoutWitness],
    ...(isServerKind ? ofFiles : ofNodes),
    'Time until the certificate expires',
  ]

  test.skipIf(!hasPrometheus)(
    `has data for every panel but those of the other kind of database and of TLS ${needs}`,
    async () => {
      const withoutData = async () => {
        const found = await Promise.all(
          queries.map(async ({ title, expr }) => ({ title, found: await query(inGrafana(expr)) })),
        )
        const titles = found
          .filter(({ found }) => found.every(({ value }) => value[1] === 'NaN'))
          .map(({ title }) => title)
        return [...new Set(titles)]
      }
      const hasAll = async () => {
        await use()
        return (await withoutData()).every((title) => ofOtherKind.includes(title))
      }
      await until('data for every panel', hasAll, withoutData)
      expect((await withoutData()).toSorted()).toEqual(ofOtherKind.toSorted())
      expect(await query('latchkey_ready')).toMatchObject([
        { metric: { job: 'latchkey' }, value: [expect.any(Number), '1'] },
      ])
    },
  )

  test.skipIf(!hasPrometheus)(
    `evaluates every rule without an error, and one goes off for the upstream that is down ${needs}`,
    async () => {
      type Rule = { name: string; health: string; state: string; lastError?: string }
      const read = async () => {
        const response = await fetch(`${prometheus.url}/api/v1/rules`)
        const { data } = (await response.json()) as { data: { groups: { rules: Rule[] }[] } }
        return data.groups.flatMap((group) => group.rules)
      }
      await until('an evaluation', async () => (await read()).every(({ health }) => health !== 'unknown'))
      const evaluated = await read()
      expect(evaluated.filter(({ health }) => health !== 'ok')).toEqual([])
      const active = async () => (await read()).filter(({ state }) => state !== 'inactive').map(({ name }) => name)
      await until('the alert', async () => (await active()).includes('LatchkeyUpstreamDown'), active)
      expect(await active()).not.toContain('LatchkeyNotReady')
    },
  )
})
