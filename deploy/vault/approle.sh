#!/bin/sh
# Set up Vault for xiaoqu-sync on a machine: policy, AppRole, and a wrapped secret id.
# Needs the vault command, VAULT_ADDR, and a token of an administrator. Safe to repeat.
#
#   ./approle.sh            prints the role id, and where the wrapped secret id is
#
# ROLE, WRAP_TTL and OUT can be set in the environment.
set -eu
cd "$(dirname "$0")"

role=${ROLE:-xiaoqu-sync}
wrap_ttl=${WRAP_TTL:-15m}
out=${OUT:-./secret-id.wrapped}

vault policy write "$role" policy.hcl >&2

if ! vault auth list -format=json | grep -q '"approle/"'; then
  vault auth enable approle >&2
fi

# An hour, renewed up to a day; then the program logs in anew, so the secret id must
# stay valid. Bind it to the machine's address where that is known.
vault write "auth/approle/role/$role" \
  token_policies="$role" token_ttl=1h token_max_ttl=24h \
  secret_id_ttl=0 secret_id_num_uses=0 >&2

# The program opens the wrapping once and keeps the secret id in memory. Started
# anew, it needs a new wrapped one, or the secret id itself: without -wrap-ttl.
umask 077
vault write -f -wrap-ttl="$wrap_ttl" -field=wrapping_token "auth/approle/role/$role/secret-id" >"$out"

echo "XIAOQU_VAULT_AUTH=approle"
echo "XIAOQU_VAULT_ROLE_ID=$(vault read -field=role_id "auth/approle/role/$role/role-id")"
echo "XIAOQU_VAULT_SECRET_ID_FILE=$out   # good for one start within $wrap_ttl"
