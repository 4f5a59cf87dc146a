#!/bin/sh
# Set up Vault for xiaoqu-sync in Kubernetes: policy, and a role for its service
# account. Needs the vault command, VAULT_ADDR, and a token of an administrator. Vault
# must be able to ask the cluster (auth/kubernetes/config, or run inside). Safe to
# repeat.
#
#   NAMESPACE=crm SERVICE_ACCOUNT=xiaoqu-sync ./kubernetes.sh
set -eu
cd "$(dirname "$0")"

role=${ROLE:-xiaoqu-sync}
namespace=${NAMESPACE:-xiaoqu-sync}
account=${SERVICE_ACCOUNT:-xiaoqu-sync}

vault policy write "$role" policy.hcl >&2

if ! vault auth list -format=json | grep -q '"kubernetes/"'; then
  vault auth enable kubernetes >&2
  # Inside the cluster this is enough; from outside add kubernetes_ca_cert and
  # token_reviewer_jwt.
  vault write auth/kubernetes/config \
    kubernetes_host="${KUBERNETES_HOST:-https://kubernetes.default.svc}" >&2
fi

vault write "auth/kubernetes/role/$role" \
  bound_service_account_names="$account" bound_service_account_namespaces="$namespace" \
  token_policies="$role" token_ttl=1h token_max_ttl=24h >&2

echo "XIAOQU_VAULT_AUTH=kubernetes"
echo "XIAOQU_VAULT_ROLE=$role"
