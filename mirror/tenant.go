package mirror

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const readTenant = `select tenant from {sync}.state where tenant <> '' order by tenant limit 1`

// Tenant is the tenant that the mirror was filled from, "" while none is
// known. All resources of a schema share it: a resource that is new does not
// open the door to another tenant.
func (m *Mirror) Tenant(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var tenant string
	err := m.pool.QueryRow(ctx, m.layout.Render(readTenant)).Scan(&tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fail("tenant", err)
	}
	return tenant, nil
}
