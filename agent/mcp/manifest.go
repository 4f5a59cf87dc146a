package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/xiaoqu-sync/xiaoqu-sync/agent"
)

// manifest is what is registered at the platform, with the tools as they were when it
// was written.
type manifest struct {
	ID          string   `json:"id"`
	Version     string   `json:"version"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	EntryURL    string   `json:"entryUrl"`
	MCPURL      string   `json:"mcpUrl"`
	CallbackURL string   `json:"callbackUrl,omitempty"`
	Protocols   []string `json:"protocolVersions"`
	Tools       []tool   `json:"tools"`
}

// Manifest writes the manifest of an application with these capabilities, indented,
// the same bytes for the same catalogue.
func Manifest(a Application, all []*agent.Capability) ([]byte, error) {
	tools, err := toolsOf(a, all)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(manifest{a.ID, a.Version, a.Name, a.Description, a.EntryURL, a.MCPURL, a.CallbackURL, versions(), tools}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("mcp: the manifest has no JSON: %w", err)
	}
	return append(out, '\n'), nil
}

func parseManifest(text []byte) (manifest, error) {
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("mcp: this is no manifest: %w", err)
	}
	return m, nil
}
