// The manual: what users read, one file per topic. `latchkey help TOPIC` prints these texts.
import administration from './administration.md' with { type: 'text' }
import airgap from './airgap.md' with { type: 'text' }
import alerts from './alerts.md' with { type: 'text' }
import audit from './audit.md' with { type: 'text' }
import availability from './availability.md' with { type: 'text' }
import backup from './backup.md' with { type: 'text' }
import budgets from './budgets.md' with { type: 'text' }
import changes from './changes.md' with { type: 'text' }
import cluster from './cluster.md' with { type: 'text' }
import config from './config.md' with { type: 'text' }
import configuration from './configuration.md' with { type: 'text' }
import disaster from './disaster.md' with { type: 'text' }
import fips from './fips.md' with { type: 'text' }
import glossary from './glossary.md' with { type: 'text' }
import inference from './inference.md' with { type: 'text' }
import install from './install.md' with { type: 'text' }
import issuers from './issuers.md' with { type: 'text' }
import linter from './linter.md' with { type: 'text' }
import monitoring from './monitoring.md' with { type: 'text' }
import operating from './operating.md' with { type: 'text' }
import page from './page.md' with { type: 'text' }
import people from './people.md' with { type: 'text' }
import policies from './policies.md' with { type: 'text' }
import presets from './presets.md' with { type: 'text' }
import recipes from './recipes.md' with { type: 'text' }
import reference from './reference.md' with { type: 'text' }
import retention from './retention.md' with { type: 'text' }
import roles from './roles.md' with { type: 'text' }
import security from './security.md' with { type: 'text' }
import sizing from './sizing.md' with { type: 'text' }
import support from './support.md' with { type: 'text' }
import troubleshooting from './troubleshooting.md' with { type: 'text' }
import upgrade from './upgrade.md' with { type: 'text' }
import workloads from './workloads.md' with { type: 'text' }

/** In the order in which the table of contents lists them. A text is Markdown. */
export const topics: ReadonlyMap<string, string> = new Map([
  ['install', install],
  ['upgrade', upgrade],
  ['recipes', recipes],
  ['workloads', workloads],
  ['people', people],
  ['policies', policies],
  ['linter', linter],
  ['issuers', issuers],
  ['airgap', airgap],
  ['inference', inference],
  ['budgets', budgets],
  ['alerts', alerts],
  ['presets', presets],
  ['administration', administration],
  ['roles', roles],
  ['page', page],
  ['config', config],
  ['configuration', configuration],
  ['operating', operating],
  ['backup', backup],
  ['monitoring', monitoring],
  ['retention', retention],
  ['audit', audit],
  ['disaster', disaster],
  ['sizing', sizing],
  ['cluster', cluster],
  ['availability', availability],
  ['troubleshooting', troubleshooting],
  ['security', security],
  ['support', support],
  ['fips', fips],
  ['glossary', glossary],
  ['reference', reference],
  ['changes', changes],
])
