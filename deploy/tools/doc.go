// Package tools checks what deploy/ ships, and holds the program that builds the
// container image without a container engine.
//
// It is a module of its own: the types of Kubernetes and kustomize are for these
// checks alone and stay out of what the worker links.
package tools
