#!/bin/sh
# Let Vault lend xiaoqu-sync its logins of PostgreSQL, for as long as it runs. Needs
# the vault command, VAULT_ADDR, a token of an administrator, and in the environment:
#
#   CONNECTION   postgresql://{{username}}:{{password}}@db.example:5432/crm?sslmode=verify-full
#   PGADMIN, PGADMINPASSWORD   a login of PostgreSQL that may create roles and is an
#                admin member of OWNER (grant crm_sync to vault_admin with admin option)
#   OWNER        the role that owns the mirror's tables (crm_sync); every lent login
#                acts as it, so that tables outlive the login that made them
set -eu

owner=${OWNER:-crm_sync}

if ! vault secrets list -format=json | grep -q '"database/"'; then
  vault secrets enable database >&2
fi

# From standard input: arguments can be seen by everybody on the machine.
printf '%s' "$PGADMINPASSWORD" | vault write database/config/xiaoqu \
  plugin_name=postgresql-database-plugin allowed_roles=xiaoqu \
  connection_url="$CONNECTION" username="$PGADMIN" password=- >&2

vault write database/roles/xiaoqu db_name=xiaoqu default_ttl=1h max_ttl=24h \
  creation_statements="create role \"{{name}}\" login password '{{password}}' valid until '{{expiration}}' in role $owner" \
  creation_statements="alter role \"{{name}}\" set role $owner" \
  revocation_statements="drop role if exists \"{{name}}\"" >&2

echo "XIAOQU_DATABASE_VAULT_PATH=database/creds/xiaoqu"
