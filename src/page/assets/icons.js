// Line icons, 16 by 16: icon('copy'). They are decoration; the words beside them carry the meaning.
import { svg } from './lit-html.js'

const strokes = {
  ok: 'M3 8.5l3.2 3.2L13 4.8',
  warn: 'M8 2l6.5 11.5h-13zM8 6.5v3M8 11.6v.1',
  bad: 'M4 4l8 8M12 4l-8 8',
  info: 'M8 7.2V12M8 4.2v.1M8 1.5a6.5 6.5 0 1 0 .01 0',
  off: 'M5.5 4v8M10.5 4v8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M4 4l8 8M12 4l-8 8',
  more: 'M6 3.5L10.5 8L6 12.5',
  overview: 'M2 13.5h12M4 11V7.5M8 11V3.5M12 11V6',
  start: 'M5 2.5l7.5 5.5L5 13.5z',
  policies: 'M8 1.5l5.5 2v4c0 3.5-2.3 5.8-5.5 7-3.2-1.2-5.5-3.5-5.5-7v-4zM5.7 8l1.7 1.7 3-3.2',
  issuers: 'M8 1.500a6.5 6.5 0 1 0 .01 0M1.5 8h13M8 1.500c4 4 4 9 0 13c-4-4-4-9 0-13',
  try: 'M6 2h4M7 2v4L3 13.500h10L9 6V2M5 10h6',
  exchanges: 'M2 5.500h11M10 2.500l3 3-3 3M14 10.500H3M6 7.500l-3 3 3 3',
  keys: 'M10.5 2a3.5 3.5 0 1 0 .01 0M8 8l-6 6M4 12l1.5 1.5',
  budgets: 'M8 1.500a6.5 6.5 0 1 0 .01 0M8 4v8M10 5.500c-3.500-1.500-5 1.800-2 2.500s1.500 4-2 2.500',
  webhooks: 'M4 11.500V7a4 4 0 0 1 8 0v4.500M2.5 11.500h11M7 14h2M8 1.500v1.500',
  presets: 'M2 4.500h7M13 4.500h1M11 3v3M2 11.500h2M8 11.500h6M6 10v3',
  requests: 'M2.5 4h11M2.5 8h11M2.5 12h7M11 12h2.5',
  usage: 'M2 2.500v11h12M4.5 10l3-3.5 2.5 2 3.5-5',
  upstreams: 'M2.5 2.500h11v4.500h-11zM2.5 9h11v4.500h-11zM5 4.700v.1M5 11.200v.1',
  changes: 'M8 1.500a6.5 6.5 0 1 0 .01 0M8 4.500V8l2.5 1.5',
  'audit-log': 'M4 1.500h5l3 3v10H4zM6 9l1.500 1.500L10.500 7.500M9 1.500v3h3',
  bundles: 'M2.500 5L8 2l5.500 3v6L8 14l-5.500-3zM2.500 5L8 8l5.500-3M8 8v6',
  documents: 'M4 1.500h5l3 3v10H4zM9 1.500v3h3M6 8h4M6 10.500h4',
  organization: 'M2.500 14V2h7v12M9.500 6h4v8M1.500 14h13M5 5h2M5 8h2M5 11h2',
  system:
    'M8 5.500a2.5 2.5 0 1 0 .01 0M8 1.500v2M8 12.500v2M1.5 8h2M12.5 8h2M3.4 3.400l1.4 1.400M11.2 11.200l1.4 1.400M3.4 12.600l1.4-1.400M11.2 4.800l1.4-1.4',
  manual:
    'M2.5 2.500h4c1 0 1.5.5 1.5 1.500v9.500c0-.8-.5-1.5-1.5-1.500h-4zM13.5 2.500h-4c-1 0-1.5.5-1.5 1.500v9.500c0-.8.5-1.5 1.5-1.500h4z',
}

/** @typedef {keyof typeof strokes} IconName */

/** @param {IconName} name */
export function icon(name) {
  return svg`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false"><path d=${strokes[name]}></path></svg>`
}
