#!/bin/sh
# Runs Chromium, and removes its folder once it has ended. It ends with the process that started it, which may have no time to do so.
chromium "$@"
rm -rf "$LATCHKEY_TEST_CHROMIUM_FOLDER"
