package api

import (
	"encoding/json"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// jsonText is JSON that was rendered before.
func jsonText(b []byte) json.RawMessage { return b }

// taskView is a task as its caller may see it.
type taskView struct {
	ID         string          `json:"id"`
	Capability string          `json:"capability"`
	State      agent.State     `json:"state"`
	Summary    string          `json:"summary"`
	Result     json.RawMessage `json:"result"`
	Error      *Error          `json:"error"`
	Documents  []documentView  `json:"documents"`
	CreatedAt  time.Time       `json:"created_at"`
	EndedAt    *time.Time      `json:"ended_at"`
}

type documentView struct {
	Title     string    `json:"title"`
	URL       string    `json:"url"`
	Type      string    `json:"type"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (d *Door) view(t agent.Task) taskView {
	v := taskView{
		ID: t.ID, Capability: t.Capability, State: t.State, Documents: []documentView{}, CreatedAt: t.CreatedAt, EndedAt: t.EndedAt,
	}
	if t.Result != nil {
		v.Summary, v.Result = t.Result.Summary, t.Result.Data
	}
	if t.Failure != nil {
		v.Summary, v.Error = t.Failure.Message, Wire(t.Failure, t.ID)
	}
	for _, l := range t.Links {
		v.Documents = append(v.Documents, documentView{
			Title: l.Title, URL: d.options.PublicURL + "/artifacts/" + l.Token, Type: l.Type, Size: l.Size, SHA256: l.SHA256, ExpiresAt: l.ExpiresAt,
		})
	}
	return v
}
