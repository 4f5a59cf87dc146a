#!/bin/sh
# Writes a folder for each tenant named on standard input, one a line, beside
# this script, and a kustomization that gathers them:
#
#   ./tenants.sh [PERIOD] <fifty.txt && kubectl apply -k .
#
# PERIOD is in minutes, a divisor of 60; 15 unless given. A tenant's minute within
# it comes from its name: it stays the same whoever else comes and goes.
set -eu
period=${1:-15}
case $period in
  1 | 2 | 3 | 4 | 5 | 6 | 10 | 12 | 15 | 20 | 30 | 60) ;;
  *) echo "the period must be a divisor of 60, and is $period" >&2; exit 2 ;;
esac
cd "$(dirname "$0")"
list=$(mktemp)
trap 'rm -f "$list"' EXIT

while read -r name; do
  case $name in '' | '#'*) continue ;; esac
  # It becomes the end of object names (a CronJob's may have 52 letters) and a schema.
  if ! printf '%s' "$name" | grep -Eqx '[a-z][a-z0-9-]{0,29}[a-z0-9]'; then
    echo "$name is no tenant's name: lower-case letters, digits and -, 2 to 31 long" >&2
    exit 2
  fi
  minute=$(($(printf '%s' "$name" | cksum | cut -d' ' -f1) % period))
  mkdir -p "$name"
  cat >"$name/tenant.yaml" <<YAML
apiVersion: v1
kind: ConfigMap
metadata:
  name: xiaoqu-sync-tenant
  annotations:
    xiaoqu-sync/schedule: "$minute-59/$period * * * *"
    xiaoqu-sync/secret: xiaoqu-sync-$name
data:
  XIAOQU_SERVICE_NAME: crm-$name
  XIAOQU_DATABASE_SCHEMA: $(printf '%s' "$name" | tr - _)
YAML
  cat >"$name/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
nameSuffix: -$name
labels:
  - includeSelectors: true
    includeTemplates: true
    pairs:
      xiaoqu-sync/tenant: $name
resources:
  - tenant.yaml
  - ../../overlays/cronjob
components:
  - ../../components/tenant
YAML
  echo "$name" >>"$list"
done

{
  echo 'apiVersion: kustomize.config.k8s.io/v1beta1'
  echo 'kind: Kustomization'
  echo 'resources:'
  sort -u "$list" | sed 's/^/  - /'
} >kustomization.yaml
echo "$(sort -u "$list" | wc -l) tenants" >&2
