// The Grafana dashboard: what Grafana wants around the table of panels. Panels flow from left to right.
import { sections } from './grafana-panels.ts'
import type { Panel } from './grafana-queries.ts'

type Place = { x: number; y: number; w: number; h: number }
/** As far as readers of the dashboard look into it. */
type PlacedPanel = { id: number; title: string; gridPos: Place; targets?: { refId: string; expr: string }[] }

export const dashboard = {
  title: 'Latchkey',
  uid: 'latchkey',
  tags: ['latchkey'],
  schemaVersion: 38,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-6h', to: 'now' },
  templating: {
    list: [
      { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', hide: 0 },
      { ...variable('job', 'Job', 'latchkey_build_info, job'), refresh: 1, hide: 0 },
      ofSeveral(variable('instance', 'Instance', 'latchkey_build_info{job="$job"}, instance')),
      ofSeveral(variable('organization', 'Organization', 'latchkey_exchanges_total{job="$job"}, organization')),
    ],
  },
  panels: placed(),
}

function fromPrometheus() {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana puts in the variable.
  return { type: 'prometheus', uid: '${datasource}' }
}

function variable(name: string, label: string, values: string) {
  const query = { query: `label_values(${values})`, refId: name }
  return { name, label, type: 'query', datasource: fromPrometheus(), query }
}

function ofSeveral(one: ReturnType<typeof variable>) {
  const current = { text: 'All', value: '$__all' }
  return { ...one, refresh: 2, multi: true, includeAll: true, allValue: '.*', current, hide: 0 }
}

function placed() {
  const panels: PlacedPanel[] = []
  let y = 0
  for (const [title, members] of Object.entries(sections)) {
    const gridPos = { h: 1, w: 24, x: 0, y }
    const row = { type: 'row', id: panels.length + 1, title, collapsed: false, gridPos, panels: [] }
    panels.push(row)
    y += 1
    let x = 0
    for (const member of members) {
      if (x + member.width > 24) [x, y] = [0, y + 8]
      panels.push(inGrafana(member, panels.length + 1, { h: 8, w: member.width, x, y }))
      x += member.width
    }
    y += 8
  }
  return panels
}

function inGrafana(member: Panel, id: number, gridPos: Place) {
  return {
    type: member.type ?? 'timeseries',
    id,
    title: member.title,
    ...member.more,
    datasource: fromPrometheus(),
    gridPos,
    fieldConfig: { defaults: { unit: member.unit, ...member.limits }, overrides: [] },
    targets: member.targets.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource: fromPrometheus(),
      expr,
      legendFormat: legend,
    })),
  }
}
