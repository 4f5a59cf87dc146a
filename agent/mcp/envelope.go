package mcp

import (
	"encoding/json"
	"time"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// envelope is Xiaoya's form of every answer.
type envelope struct {
	Status    string          `json:"status"` // accepted, completed, failed or cancelled
	Summary   string          `json:"summary"`
	Data      json.RawMessage `json:"data"`
	Artifacts []artifact      `json:"artifacts"`
}

// artifact is a document that can be read for a while. Its address is a secret of its
// own and opens nothing else.
type artifact struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	Mime   string `json:"mimeType"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// failure is the data of an answer that failed, and of a JSON-RPC error.
type failure struct {
	Code        string          `json:"errorCode"` // stable
	Class       string          `json:"errorClass"`
	Message     string          `json:"message"`
	Retryable   bool            `json:"retryable"`
	RetryAfter  int64           `json:"retryAfterSeconds,omitempty"`
	Field       string          `json:"field,omitempty"`
	Suggestions []string        `json:"suggestions,omitempty"`
	RequestID   string          `json:"requestId,omitempty"`
	Details     json.RawMessage `json:"details,omitempty"`
	Task        string          `json:"taskId,omitempty"`
}

func failureOf(f *agent.Failure) failure {
	return failure{
		Code: f.Code, Class: string(f.Class), Message: f.Message, Retryable: f.Class.Passing(),
		RetryAfter: int64((f.RetryAfter + time.Second - 1) / time.Second),
		Field:      f.Field, Suggestions: f.Suggestions, RequestID: f.RequestID, Details: f.Details,
	}
}

func failedWith(f *agent.Failure, t *agent.Task) envelope {
	data := failureOf(f)
	if t != nil {
		data.Task = t.ID
	}
	return envelope{Status: string(agent.Failed), Summary: f.Message, Data: always(data)}
}

// accepted is the answer to a call whose task goes on.
func accepted(t agent.Task) envelope {
	return envelope{
		Status: string(agent.Accepted), Summary: "the task was accepted; its end will be told",
		Data: always(map[string]string{"taskId": t.ID}),
	}
}

// ended is the last envelope of a task.
func ended(public string, t agent.Task) envelope {
	switch {
	case t.State == agent.Completed && t.Result != nil:
		return envelope{Status: string(agent.Completed), Summary: t.Result.Summary, Data: t.Result.Data, Artifacts: artifacts(public, t.Links)}
	case t.State == agent.Cancelled:
		return envelope{Status: string(agent.Cancelled), Summary: "the task was cancelled before it began", Data: always(map[string]string{"taskId": t.ID})}
	case t.Failure != nil:
		return failedWith(t.Failure, &t)
	default:
		return failedWith(agent.AsFailure(nil), &t)
	}
}

func artifacts(public string, links []agent.Link) []artifact {
	out := make([]artifact, 0, len(links))
	for _, l := range links {
		out = append(out, artifact{
			Type: artifactType(l.Type), Title: l.Title, URL: public + "/artifacts/" + l.Token, Mime: l.Type, Size: l.Size, SHA256: l.SHA256,
		})
	}
	return out
}

// artifactType is Xiaoya's word for a media type.
func artifactType(mime string) string {
	switch mime {
	case "text/markdown":
		return "markdown"
	case "application/json":
		return "json"
	}
	return "file"
}

// always is the JSON of what always has one.
func always(v any) json.RawMessage {
	out, err := text(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return out
}
