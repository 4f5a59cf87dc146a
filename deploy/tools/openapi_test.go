package tools_test

import (
	"os"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// The document is the one that the door serves; a test there keeps it so.
func TestTheOpenAPIDocumentIsOne(t *testing.T) {
	text, err := os.ReadFile("../../agent/api/testdata/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	if doc.GetVersion() != "3.1.0" {
		t.Errorf("version %s", doc.GetVersion())
	}
	v, errs := validator.NewValidator(doc)
	for _, err := range errs {
		t.Fatal(err)
	}
	valid, problems := v.ValidateDocument()
	for _, p := range problems {
		t.Errorf("%s: %s", p.Message, p.Reason)
	}
	if !valid && len(problems) == 0 {
		t.Error("not valid")
	}
}
