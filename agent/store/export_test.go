package store

import "github.com/xiaoqu-sync/xiaoqu-sync/agent"

// SearchSQL is the statement of a search, to be explained.
func (s *Store) SearchSQL(q agent.Query) (string, []any) {
	sql, args, f := s.readings[q.Resource].where(q)
	if f != nil {
		panic(f)
	}
	return sql, args
}

// ReadSQL are the statements of one record and of changes.
func (s *Store) ReadSQL(resource string) (record, changes string) {
	return s.readings[resource].record, s.readings[resource].changes
}
