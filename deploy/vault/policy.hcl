# All that xiaoqu-sync needs of Vault. Names: see setup.sh beside this file.

# The service key, in a KV engine of version 2 mounted at secret. In version 1 the
# path has no data/.
path "secret/data/xiaoqu/prod" {
  capabilities = ["read"]
}

# A login of the database out of the database engine (database.vault_path). Leave it
# out where the database's login is elsewhere.
path "database/creds/xiaoqu" {
  capabilities = ["read"]
}

# What Vault's own policy "default" grants as well; written out for those who leave
# that one out: to renew the token and its leases, to tell a dead token from a missing
# right, and to give both back at the end.
path "auth/token/renew-self" {
  capabilities = ["update"]
}
path "auth/token/lookup-self" {
  capabilities = ["read"]
}
path "auth/token/revoke-self" {
  capabilities = ["update"]
}
path "sys/leases/renew" {
  capabilities = ["update"]
}
