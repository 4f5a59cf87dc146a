package relay

import (
	"encoding/json"
	"fmt"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// margin is what an envelope needs around its output, in bytes.
const margin = 4 << 10

// output is what a task gives: data for the AI to judge by, parts for people
// (RSP §8).
type output struct {
	Data  json.RawMessage `json:"data"`
	Parts []part          `json:"parts,omitempty"`
}

// part is a markdown text or a file.
type part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
}

func markdown(text string) part { return part{Type: "markdown", Text: text} }

// proposal is one way on (RSP §7). Its content has the form of an output.
type proposal struct {
	ID      string `json:"proposal_id"`
	Title   string `json:"title"`
	Content output `json:"content"`
}

func proposals(from []agent.Proposal) []proposal {
	out := make([]proposal, len(from))
	for i, p := range from {
		out[i] = proposal{ID: p.ID, Title: p.Title, Content: output{
			Data: p.Data, Parts: []part{markdown("**" + p.Title + "**: " + p.Summary)},
		}}
	}
	return out
}

// output renders a result. With a proposal it names that one in its data, as Relay
// wants to see it (RSP §7). Documents come as files to fetch; without a public
// address they stay here, for data says the same. Nothing is shortened: what is
// longer than Relay takes is a failure that says so.
func (d *Door) output(r agent.Result, links []agent.Link, chosen string) (*output, error) {
	data, err := choice(r.Data, chosen)
	if err != nil {
		return nil, err
	}
	out := &output{Data: data, Parts: []part{markdown(r.Summary)}}
	if d.options.DocumentURL != nil {
		for _, l := range links {
			out.Parts = append(out.Parts, part{Type: "file", URL: d.options.DocumentURL(l.Token), Name: l.Name, MIME: l.Type})
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("relay: a kept result has no JSON: %w", err)
	}
	if len(text) > maxBody-margin {
		return nil, &agent.Failure{
			Class: agent.Permanent, Code: "answer_too_large", Message: fmt.Sprintf("it was done, and its answer is longer than the %d bytes that Relay takes", maxBody),
			Suggestions: []string{"ask for less at once: fewer resources, or a lower limit"},
		}
	}
	return out, nil
}

// choice adds the proposal that was chosen to data.
func choice(data json.RawMessage, chosen string) (json.RawMessage, error) {
	if chosen == "" {
		return data, nil
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, fmt.Errorf("relay: a kept result is no object: %w", err)
	}
	id, err := json.Marshal(chosen)
	if err != nil {
		return nil, fmt.Errorf("relay: a proposal's id has no JSON: %w", err)
	}
	o["proposal_id"] = id
	return json.Marshal(o)
}
