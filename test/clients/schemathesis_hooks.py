# Loaded by schemathesis, see schemathesis.ts: each case gets a credential that is valid at that moment, since the cases may delete the
# key that they are sent with.
import os
import urllib.request

import schemathesis


@schemathesis.auth(refresh_interval=None)
class Credential:
    def get(self, case, context):
        with urllib.request.urlopen(os.environ["LATCHKEY_TEST_CREDENTIAL_URL"]) as response:
            return response.read().decode()

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}
