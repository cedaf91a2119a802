// The files of the admin page as text, the same on every runtime. Only the first request for one of them loads this file.

// @ts-expect-error It is imported as text, and its declarations describe the module.
import litDirective from '../../node_modules/lit-html/directive.js' with { type: 'text' }
// @ts-expect-error As above.
import litHelpers from '../../node_modules/lit-html/directive-helpers.js' with { type: 'text' }
// @ts-expect-error As above.
import litRepeat from '../../node_modules/lit-html/directives/repeat.js' with { type: 'text' }
// @ts-expect-error As above.
import litHtml from '../../node_modules/lit-html/lit-html.js' with { type: 'text' }

import { modulesOf, squeezedCss, withoutComments } from './asset-text.ts'
import appearanceJs from './assets/appearance.js' with { type: 'text' }
import auditLogJs from './assets/audit-log.js' with { type: 'text' }
import budgetAmountsJs from './assets/budget-amounts.js' with { type: 'text' }
import budgetFormJs from './assets/budget-form.js' with { type: 'text' }
import budgetTopUpJs from './assets/budget-top-up.js' with { type: 'text' }
import budgetsJs from './assets/budgets.js' with { type: 'text' }
import bulkJs from './assets/bulk.js' with { type: 'text' }
import bundlesJs from './assets/bundles.js' with { type: 'text' }
import changesJs from './assets/changes.js' with { type: 'text' }
import chartJs from './assets/chart.js' with { type: 'text' }
import chartScaleJs from './assets/chart-scale.js' with { type: 'text' }
import clientJs from './assets/client.js' with { type: 'text' }
import codeFieldJs from './assets/code-field.js' with { type: 'text' }
import comboboxJs from './assets/combobox.js' with { type: 'text' }
import connectionJs from './assets/connection.js' with { type: 'text' }
import controlJs from './assets/control.js' with { type: 'text' }
import csvJs from './assets/csv.js' with { type: 'text' }
import detailsJs from './assets/details.js' with { type: 'text' }
import dialogJs from './assets/dialog.js' with { type: 'text' }
import diffJs from './assets/diff.js' with { type: 'text' }
import documentsJs from './assets/documents.js' with { type: 'text' }
import downloadJs from './assets/download.js' with { type: 'text' }
import draftsJs from './assets/drafts.js' with { type: 'text' }
import editJs from './assets/edit.js' with { type: 'text' }
import editorJs from './assets/editor.js' with { type: 'text' }
import exchangesJs from './assets/exchanges.js' with { type: 'text' }
import exportJs from './assets/export.js' with { type: 'text' }
import fieldsJs from './assets/fields.js' with { type: 'text' }
import filtersJs from './assets/filters.js' with { type: 'text' }
import findingsJs from './assets/findings.js' with { type: 'text' }
import formJs from './assets/form.js' with { type: 'text' }
import frameJs from './assets/frame.js' with { type: 'text' }
import fromTokenJs from './assets/from-token.js' with { type: 'text' }
import iconSvg from './assets/icon.svg' with { type: 'text' }
import iconsJs from './assets/icons.js' with { type: 'text' }
import indexHtml from './assets/index.html' with { type: 'text' }
import installationFieldsJs from './assets/installation-fields.js' with { type: 'text' }
import installationFormsJs from './assets/installation-forms.js' with { type: 'text' }
import inviteJs from './assets/invite.js' with { type: 'text' }
import issuerFieldsJs from './assets/issuer-fields.js' with { type: 'text' }
import issuerFormJs from './assets/issuer-form.js' with { type: 'text' }
import issuersJs from './assets/issuers.js' with { type: 'text' }
import keyJs from './assets/key.js' with { type: 'text' }
import keyFieldsJs from './assets/key-fields.js' with { type: 'text' }
import keyFormJs from './assets/key-form.js' with { type: 'text' }
import keyRotateJs from './assets/key-rotate.js' with { type: 'text' }
import keysJs from './assets/keys.js' with { type: 'text' }
import listRowsJs from './assets/list-rows.js' with { type: 'text' }
import listingJs from './assets/listing.js' with { type: 'text' }
import mainJs from './assets/main.js' with { type: 'text' }
import manualJs from './assets/manual.js' with { type: 'text' }
import markdownJs from './assets/markdown.js' with { type: 'text' }
import namesJs from './assets/names.js' with { type: 'text' }
import noticeJs from './assets/notice.js' with { type: 'text' }
import numberJs from './assets/number.js' with { type: 'text' }
import organizationJs from './assets/organization.js' with { type: 'text' }
import overviewJs from './assets/overview.js' with { type: 'text' }
import paceJs from './assets/pace.js' with { type: 'text' }
import pageCss from './assets/page.css' with { type: 'text' }
import pageJs from './assets/page.js' with { type: 'text' }
import paletteJs from './assets/palette.js' with { type: 'text' }
import paletteChoicesJs from './assets/palette-choices.js' with { type: 'text' }
import partsJs from './assets/parts.js' with { type: 'text' }
import planJs from './assets/plan.js' with { type: 'text' }
import platformsJs from './assets/platforms.js' with { type: 'text' }
import policiesJs from './assets/policies.js' with { type: 'text' }
import policyJs from './assets/policy.js' with { type: 'text' }
import policyDraftJs from './assets/policy-draft.js' with { type: 'text' }
import policyFieldsJs from './assets/policy-fields.js' with { type: 'text' }
import policyFormJs from './assets/policy-form.js' with { type: 'text' }
import presetJs from './assets/preset.js' with { type: 'text' }
import presetFormJs from './assets/preset-form.js' with { type: 'text' }
import presetsJs from './assets/presets.js' with { type: 'text' }
import proofJs from './assets/proof.js' with { type: 'text' }
import queueJs from './assets/queue.js' with { type: 'text' }
import recipesJs from './assets/recipes.js' with { type: 'text' }
import refusedRequestsJs from './assets/refused-requests.js' with { type: 'text' }
import remediesJs from './assets/remedies.js' with { type: 'text' }
import requestJs from './assets/request.js' with { type: 'text' }
import requestsJs from './assets/requests.js' with { type: 'text' }
import routerJs from './assets/router.js' with { type: 'text' }
import signInJs from './assets/sign-in.js' with { type: 'text' }
import signInChoicesJs from './assets/sign-in-choices.js' with { type: 'text' }
import startJs from './assets/start.js' with { type: 'text' }
import systemJs from './assets/system.js' with { type: 'text' }
import tableJs from './assets/table.js' with { type: 'text' }
import tryJs from './assets/try.js' with { type: 'text' }
import upstreamsJs from './assets/upstreams.js' with { type: 'text' }
import usageJs from './assets/usage.js' with { type: 'text' }
import versionsJs from './assets/versions.js' with { type: 'text' }
import viewsJs from './assets/views.js' with { type: 'text' }
import webhooksJs from './assets/webhooks.js' with { type: 'text' }
import wordsJs from './assets/words.js' with { type: 'text' }
import youJs from './assets/you.js' with { type: 'text' }
import zoneJs from './assets/zone.js' with { type: 'text' }

// Bun's types know a page only as a bundle.
const indexText: unknown = indexHtml

const ours = {
  'index.html': String(indexText),
  'icon.svg': iconSvg,
  'appearance.js': appearanceJs,
  'chart-scale.js': chartScaleJs,
  'chart.js': chartJs,
  'bulk.js': bulkJs,
  'details.js': detailsJs,
  'export.js': exportJs,
  'filters.js': filtersJs,
  'listing.js': listingJs,
  'requests.js': requestsJs,
  'list-rows.js': listRowsJs,
  'policy.js': policyJs,
  'key.js': keyJs,
  'request.js': requestJs,
  'refused-requests.js': refusedRequestsJs,
  'client.js': clientJs,
  'dialog.js': dialogJs,
  'diff.js': diffJs,
  'drafts.js': draftsJs,
  'edit.js': editJs,
  'versions.js': versionsJs,
  'audit-log.js': auditLogJs,
  'download.js': downloadJs,
  'proof.js': proofJs,
  'exchanges.js': exchangesJs,
  'findings.js': findingsJs,
  'form.js': formJs,
  'frame.js': frameJs,
  'icons.js': iconsJs,
  'issuer-form.js': issuerFormJs,
  'issuers.js': issuersJs,
  'main.js': mainJs,
  'manual.js': manualJs,
  'markdown.js': markdownJs,
  'names.js': namesJs,
  'notice.js': noticeJs,
  'number.js': numberJs,
  'pace.js': paceJs,
  'page.js': pageJs,
  'palette.js': paletteJs,
  'palette-choices.js': paletteChoicesJs,
  'parts.js': partsJs,
  'plan.js': planJs,
  'platforms.js': platformsJs,
  'policies.js': policiesJs,
  'policy-draft.js': policyDraftJs,
  'connection.js': connectionJs,
  'control.js': controlJs,
  'fields.js': fieldsJs,
  'issuer-fields.js': issuerFieldsJs,
  'key-fields.js': keyFieldsJs,
  'policy-fields.js': policyFieldsJs,
  'policy-form.js': policyFormJs,
  'queue.js': queueJs,
  'recipes.js': recipesJs,
  'router.js': routerJs,
  'sign-in.js': signInJs,
  'sign-in-choices.js': signInChoicesJs,
  'words.js': wordsJs,
  'you.js': youJs,
  'zone.js': zoneJs,
  'start.js': startJs,
  'table.js': tableJs,
  'try.js': tryJs,
  'overview.js': overviewJs,
  'keys.js': keysJs,
  'presets.js': presetsJs,
  'usage.js': usageJs,
  'upstreams.js': upstreamsJs,
  'changes.js': changesJs,
  'system.js': systemJs,
  'key-form.js': keyFormJs,
  'key-rotate.js': keyRotateJs,
  'preset.js': presetJs,
  'preset-form.js': presetFormJs,
  'csv.js': csvJs,
  'views.js': viewsJs,
  'budgets.js': budgetsJs,
  'budget-amounts.js': budgetAmountsJs,
  'budget-form.js': budgetFormJs,
  'budget-top-up.js': budgetTopUpJs,
  'webhooks.js': webhooksJs,
  'invite.js': inviteJs,
  'bundles.js': bundlesJs,
  'documents.js': documentsJs,
  'organization.js': organizationJs,
  'installation-forms.js': installationFormsJs,
  'installation-fields.js': installationFieldsJs,
  'editor.js': editorJs,
  'remedies.js': remediesJs,
  'from-token.js': fromTokenJs,
  'code-field.js': codeFieldJs,
  'combobox.js': comboboxJs,
}

const sent: ReadonlyMap<string, string> = new Map([
  ...Object.entries(ours).map(([name, text]) => [name, withoutComments(text)] as const),
  ['page.css', squeezedCss(pageCss)],
  ['lit-html.js', String(litHtml)],
  ['directive.js', String(litDirective)],
  ['directive-helpers.js', String(litHelpers)],
  // All files of the page lie in one folder.
  ['repeat.js', String(litRepeat).replaceAll('from"../', 'from"./')],
])

/** The modules of the first view: a browser asks for all of them at once, and not for those of a module after it has read it. */
const preloads = [...modulesOf(['main.js', 'overview.js'], sent)].map(
  (name) => `<link rel="modulepreload" href="assets/${name}" />`,
)

/** By the name under which the page asks for it. */
export const assets: ReadonlyMap<string, string> = new Map([
  ...sent,
  ['index.html', (sent.get('index.html') ?? '').replace('</head>', () => `${preloads.join('')}</head>`)],
])
