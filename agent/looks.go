package agent

import (
	"context"
	"fmt"
	"strings"
)

type resourcesInput struct {
	Resources []string `json:"resources"`
}

// looks are the capabilities that tell how the mirror stands.
func (s *Service) looks() []*Capability {
	input := object(shape{"resources": s.someResources()}).encode()
	return []*Capability{
		{
			ID: "mirror.status", Title: "State of the mirror", TitleZH: "镜像状态", Risk: Low, Idempotent: true, Timeout: readTime,
			Description: "How each resource's mirror stands: phase, rows, last success, last error, whether a rebuild is held. Ask this first when something seems wrong.",
			Input:       input, Output: object(shape{"resources": list(statusShape(), 100)}, "resources").encode(),
			run: handle(s.status),
		},
		{
			ID: "mirror.freshness", Title: "Freshness of the data", TitleZH: "数据新鲜度", Risk: Low, Idempotent: true, Timeout: readTime,
			Description: "As of when each resource's data is, and how old that makes it. Ask this before answering a question that needs recent data.",
			Input:       input, Output: object(shape{"resources": list(freshnessShape(), 100)}, "resources").encode(),
			run: handle(s.freshness),
		},
		{
			ID: "quarantine.list", Title: "Records in quarantine", TitleZH: "隔离的记录", Risk: Low, Idempotent: true, Timeout: readTime, Personal: []string{personalIDs},
			Description: "Records that could not be mirrored as they came, with the reason; never their content.",
			Input: object(shape{
				"resource": s.oneResource(), "after": number("Only lines above this id; 0 from the beginning.", 0, maxInt), "limit": limitShape(),
			}, "resource").encode(),
			Output: object(shape{"quarantined": list(quarantinedShape(), maxRows), "more": flag("Whether there may be more.")}, "quarantined", "more").encode(),
			run:    handle(s.quarantine),
		},
	}
}

func (s *Service) status(ctx context.Context, in resourcesInput) (string, any, error) {
	all, err := s.options.Mirror.Status(ctx, s.chosen(in.Resources))
	if err != nil {
		return "", nil, err
	}
	var rows int64
	var trouble []string
	for _, r := range all {
		rows += r.LiveRows
		switch {
		case r.Held != nil:
			trouble = append(trouble, r.Resource+" is held")
		case r.LastError != nil:
			trouble = append(trouble, r.Resource+" failed with "+r.LastError.Code)
		}
	}
	summary := fmt.Sprintf("%d live rows in %d resources", rows, len(all))
	if len(trouble) > 0 {
		summary += "; " + strings.Join(trouble, "; ")
	}
	return summary, map[string]any{"resources": orNone(all)}, nil
}

func (s *Service) freshness(ctx context.Context, in resourcesInput) (string, any, error) {
	all, err := s.options.Mirror.Freshness(ctx, s.chosen(in.Resources))
	if err != nil {
		return "", nil, err
	}
	var says []string
	for _, r := range all {
		if r.AgeSeconds == nil {
			says = append(says, r.Resource+" was never complete")
			continue
		}
		says = append(says, fmt.Sprintf("%s is %d s old", r.Resource, *r.AgeSeconds))
	}
	return strings.Join(says, ", "), map[string]any{"resources": orNone(all)}, nil
}

type quarantineInput struct {
	Resource string `json:"resource"`
	After    whole  `json:"after"`
	Limit    whole  `json:"limit"`
}

func (s *Service) quarantine(ctx context.Context, in quarantineInput) (string, any, error) {
	limit := limitOr(in.Limit)
	lines, err := s.options.Mirror.Quarantine(ctx, in.Resource, int64(in.After), limit+1)
	if err != nil {
		return "", nil, err
	}
	lines, more := cut(lines, limit)
	return fmt.Sprintf("%d records of %s in quarantine%s", len(lines), in.Resource, andMore(more)), map[string]any{"quarantined": lines, "more": more}, nil
}

func statusShape() shape {
	return object(shape{
		"resource":        free("Which one."),
		"phase":           free("first, incremental or rebuild."),
		"live_rows":       count("Rows that are not deleted."),
		"deleted_rows":    count("Tombstones."),
		"change_seq":      count("Of the newest change."),
		"quarantined":     count("Records in quarantine."),
		"last_success_at": orNull(moment("When the last complete round ended.")),
		"last_error": orNull(object(shape{
			"code": free("As the remote or the worker names it."), "message": free("For a person."), "request_id": free("Of the remote's last call."), "at": moment("When."),
		}, "code", "message", "request_id", "at")),
		"working": flag("Whether a run works on it now."),
		"held":    orNull(differenceShape()),
	}, "resource", "phase", "live_rows", "deleted_rows", "change_seq", "quarantined", "last_success_at", "last_error", "working", "held")
}

func freshnessShape() shape {
	return object(shape{
		"resource":        free("Which one."),
		"phase":           free("first, incremental or rebuild."),
		"data_cutoff_at":  orNull(moment("The data is as of this time.")),
		"last_success_at": orNull(moment("When the last complete round ended.")),
		"age_seconds":     orNull(count("Since the cut-off; null when the mirror was never complete.")),
		"live_rows":       count("Rows that are not deleted."),
		"deleted_rows":    count("Tombstones."),
		"held":            flag("Whether a rebuild is held."),
	}, "resource", "phase", "data_cutoff_at", "last_success_at", "age_seconds", "live_rows", "deleted_rows", "held")
}

func quarantinedShape() shape {
	return object(shape{
		"id": count("For after."), "resource": free("Which one."), "kind": free("refused: not in the mirror; mended: in it, with a repair."),
		"reason": free("Why."), "record_id": free("Empty when it has none that can be used."), "bytes": count("Length of the record."),
		"seen": count("How often it came."), "last_seen_at": moment("When last."), "request_id": free("Of the call that brought it."),
	}, "id", "resource", "kind", "reason", "record_id", "bytes", "seen", "last_seen_at", "request_id")
}
