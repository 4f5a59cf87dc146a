package mcp

import "net/http"

// Reduced is the request as the SDK gets it.
func Reduced(r *http.Request) *http.Request { return reduced(r, nil, "") }
