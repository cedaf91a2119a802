#!/bin/sh
# Runs latchkey doctor every day. As root: latchkey service print doctor-timer | sh
# A finding that is an error or a warning makes the unit fail: systemctl --failed lists it, and
# journalctl -u latchkey-doctor shows what to do. For mail, name a unit of your own in OnFailure=.
set -eu
units="${UNIT_DIR:-/etc/systemd/system}"

cat > "$units/latchkey-doctor.service" <<'END'
[Unit]
Description=What needs attention in Latchkey
After=latchkey.service

[Service]
Type=oneshot
User=latchkey
Group=latchkey
ExecStart=/usr/local/bin/latchkey doctor --config /etc/latchkey/latchkey.conf
CacheDirectory=latchkey
CacheDirectoryMode=0700
StateDirectory=latchkey
StateDirectoryMode=0700
Environment=TMPDIR=/var/cache/latchkey
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
PrivateTmp=yes
PrivateDevices=yes
ProtectSystem=strict
ProtectHome=yes
END

cat > "$units/latchkey-doctor.timer" <<'END'
[Unit]
Description=Look every day at what needs attention in Latchkey

[Timer]
OnCalendar=daily
RandomizedDelaySec=1h
Persistent=yes

[Install]
WantedBy=timers.target
END

systemctl daemon-reload
systemctl enable --now latchkey-doctor.timer
