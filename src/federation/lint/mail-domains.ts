// What the end of an email address says about whose it is. No list of domains at which everybody can have an address is
// complete, so a domain alone names nobody.
import type { Facts } from './fact.ts'
import { type Check, certaintyOf, type Level } from './issuer-kind.ts'

/**
 * Projects of Google itself, whose accounts act for the projects of all customers
 * (https://cloud.google.com/iam/docs/service-agents).
 */
const googleProjects = [
  ...['gcp-sa-[a-z0-9-]+', '[a-z0-9-]+\\.google\\.com', 'gcp-gae-service', 'compute-system', 'container-engine-robot'],
  ...['containerregistry', 'container-analysis', 'gcf-admin-robot', 'serverless-robot-prod', 'gs-project-accounts'],
  ...[
    'dataflow-service-producer-prod',
    'dataproc-accounts',
    'cloudcomposer-accounts',
    'cloud-tpu',
    'cloud-filer',
    'cloud-redis',
    'cloud-memcache-sa',
  ],
  ...['cloud-cdn-fill', 'service-networking', 'service-consumer-management', 'sourcerepo-service-accounts'],
  ...['remotebuildexecution', 'storage-transfer-service', 'bigquery-encryption', 'bigquery-data-connectors', 'dlp-api'],
  ...[
    'endpoints-portal',
    'firebase-rules',
    'firebase-sa-management',
    'crashlytics-bigquery-prod',
    'security-center-api',
  ],
  ...['trifacta-gcloud-prod'],
]
const googleProject = new RegExp(`@(?:${googleProjects.join('|')})\\.iam\\.`)
const projectAccounts = /@[a-z][a-z0-9-]*(?:\.[a-z0-9.-]+)?\.iam\.gserviceaccount\.com$/

/** Reports whether a suffix of an address ends with the accounts of one project of a customer of Google. */
export function namesProject(suffix: string): boolean {
  return projectAccounts.test(suffix) && !googleProject.test(suffix)
}

/** Applies if only the domain of an address says whose it is. */
export function mailDomainCheck(tenant: Level): Check {
  return {
    rule: 'email-domain',
    applies: (facts: Facts) => certaintyOf(tenant, facts) !== 'pinned' && /@./.test(facts.get('email')?.suffix ?? ''),
  }
}
